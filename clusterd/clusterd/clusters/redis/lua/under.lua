-- under(BASE; era, (span, other, homes, policy)*) → for each 5 bytes: 1 where the span was put under the other, else 0; its homes. Nothing
--         where that was asked for in another era
--
-- KEYS[1] BASE   the home shard (spans.lua)
-- ARGV    era; packed, 13 bytes each: a root that this home made, and a smaller one: compare-and-set of one record; homes and
--         policy of the first, whose record may have been lost (widen.lua)
define('under', function(ARGV)
  if not spans.is_era(ARGV[1]) then return '' end
  local reply = {}
  for at = 1, #ARGV[2], 13 do
    local span, other, anywhere, policy = unpack4('<I4I4I4B', ARGV[2], at)
    local parent, name, homes, p = spans.read(span)
    if not parent then parent, name, homes, p = 0, span, anywhere, policy end
    local done = parent == 0
    if done then
      spans.write(span, other, name, homes, p)
      spans.due('<BI4I4', spans.MOVED, span, other)
    end
    reply[#reply + 1] = pack('<BI4', done and 1 or 0, homes)
  end
  return concat(reply)
end)
