#!lua
-- offer(rules; host, version, rule set) → 1 stored, 0 where the same or a later version lies there
--
-- KEYS[1]  <prefix>rules   HASH  host → rule set as JSON, where crawlers load it from at their start
local known = redis.call('HGET', KEYS[1], ARGV[1])
if known and cjson.decode(known)['version'] >= tonumber(ARGV[2]) then
  return 0
end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[3])
return 1
