#!lua
-- lease(lease; owner, milliseconds) → 1 where the owner has the lease now; with 0 milliseconds it is given back
--
-- KEYS[1]  <prefix>rb:{host}:lease   STRING  owner, expires by itself
local owner = redis.call('GET', KEYS[1])
if owner and owner ~= ARGV[1] then
  return 0
end
if ARGV[2] == '0' then
  redis.call('DEL', KEYS[1])
else
  redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
end
return 1
