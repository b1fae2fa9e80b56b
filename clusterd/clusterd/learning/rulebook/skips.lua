#!lua
-- skips(log, counts, seen, before; limit, then identity, rule, message of each skip) → how many were new
--
-- KEYS[1]  <prefix>rb:{:skips}:log      STREAM  m: the skip as a message; about the latest ``limit``
-- KEYS[2]  <prefix>rb:{:skips}:counts   HASH    rule → skips since the beginning
-- KEYS[3]  <prefix>rb:{:skips}:seen     SET     identities of the latest skips, at most ``limit``
-- KEYS[4]  <prefix>rb:{:skips}:before   SET     those before them, so that a delivery repeated is known again
local limit = tonumber(ARGV[1])
local new = 0
for i = 2, #ARGV, 3 do
  if redis.call('SISMEMBER', KEYS[4], ARGV[i]) == 0 and redis.call('SADD', KEYS[3], ARGV[i]) == 1 then
    redis.call('XADD', KEYS[1], 'MAXLEN', '~', limit, '*', 'm', ARGV[i + 2])
    redis.call('HINCRBY', KEYS[2], ARGV[i + 1], 1)
    new = new + 1
    if redis.call('SCARD', KEYS[3]) >= limit then
      redis.call('UNLINK', KEYS[4]) -- beside the others' calls: RENAME would free all of it at once, and hold them up
      redis.call('RENAME', KEYS[3], KEYS[4])
    end
  end
end
return new
