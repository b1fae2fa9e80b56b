-- under(BASE; era, (span, other)*) → for each 5 bytes: 1 where the span was put under the other, else 0; its homes. Nothing
--         where that was asked for in another era
--
-- KEYS[1] BASE   the home shard (spans.lua)
-- ARGV    era; packed, 8 bytes each: a root that this home made, and a smaller one: compare-and-set of one record
define('under', function(ARGV)
  if not spans.is_era(ARGV[1]) then return '' end
  local reply = {}
  for at = 1, #ARGV[2], 8 do
    local span, other = unpack4('<I4I4', ARGV[2], at)
    local parent, name, homes, p = spans.read(span)
    local done = parent == 0
    if done then
      spans.write(span, other, name, homes, p)
      spans.due('<BI4I4', spans.MOVED, span, other)
    end
    reply[#reply + 1] = pack('<BI4', done and 1 or 0, homes or 0)
  end
  return concat(reply)
end)
