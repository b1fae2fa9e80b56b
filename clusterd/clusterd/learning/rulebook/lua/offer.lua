-- offer(BASE; host, version, rule set) → 1 stored, 0 where the same or a later version lies there
--
-- KEYS[1] BASE   <prefix>rules   HASH  host → rule set as JSON, where crawlers load it from at their start
define('offer', function(ARGV)
  local known = call('HGET', BASE, ARGV[1])
  if known and cjson.decode(known)['version'] >= tonumber(ARGV[2]) then return 0 end
  call('HSET', BASE, ARGV[1], ARGV[3])
  return 1
end)
