#!lua
-- looked_at(changed; host, pages) → how many pages are left that no learner has looked at
--
-- KEYS[1]  <prefix>rb:changed   HASH  host with evidence that no learner has looked at → pages of it
local left = redis.call('HINCRBY', KEYS[1], ARGV[1], '-' .. ARGV[2])
if left <= 0 then
  redis.call('HDEL', KEYS[1], ARGV[1])
end
return left
