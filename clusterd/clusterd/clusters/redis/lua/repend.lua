-- repend(BASE; contents) → how many of these contents (4 bytes each) are pending again: those that a version refers to
--
-- KEYS[1] BASE   the home shard (records.lua)
define('repend', function(ARGV)
  local ids = {}
  for at = 1, #ARGV[1], 4 do
    local id = u4(ARGV[1], at)
    local n = get(NODES, id)
    if n[REP] == id and n[CREFS] > 0 then ids[#ids + 1] = whole(id) end
  end
  for at = 1, #ids, MOST do call('SADD', BASE .. ':w', unpack(ids, at, math.min(#ids, at + MOST - 1))) end
  return #ids
end)
