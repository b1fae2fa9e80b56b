#!lua
-- looked_at(changed; host, times) → 1 taken off, 0 where the host was added to since
--
-- KEYS[1]  <prefix>rb:changed   HASH  host with evidence that no learner has looked at → times added to
if tonumber(redis.call('HGET', KEYS[1], ARGV[1]) or '0') > tonumber(ARGV[2]) then
  return 0
end
redis.call('HDEL', KEYS[1], ARGV[1])
return 1
