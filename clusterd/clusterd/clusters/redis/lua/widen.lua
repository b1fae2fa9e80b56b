-- widen(BASE; era, (span, homes, policy)*) → for each a byte: 1 where these homes may have a part of the span from now on, 0
--         where it is no root. Nothing where that was asked for in another era
--
-- KEYS[1] BASE   the home shard (spans.lua)
-- ARGV    era; packed, 9 bytes each: a span that this home made; homes, a bit each; its policy
--
-- A span whose record was lost (a node that came back without its latest writes) is made again: its homes still know it.
define('widen', function(ARGV)
  if not spans.is_era(ARGV[1]) then return '' end
  local reply = {}
  for at = 1, #ARGV[2], 9 do
    local span, more, p = unpack4('<I4I4B', ARGV[2], at)
    local parent, name, homes = spans.read(span)
    if not parent then parent, name, homes = 0, span, 0 end
    if parent == 0 then spans.write(span, 0, name, bit.bor(homes, more) % 4294967296, p) end
    reply[#reply + 1] = parent == 0 and '\1' or '\0'
  end
  return concat(reply)
end)
