#!lua
-- rewrite(log, meta; generation, blocks replaced, pages replaced, pages given, cut (1 or 0), block…) → 1 done, 0 not
--
-- Nothing is done where another has rewritten the log. What was appended since the mark stays behind the new blocks. The
-- log lives as long as it would have: where all its blocks are replaced, Redis forgets when it was to expire.
--
-- KEYS[1]  <prefix>rb:{host}:log    LIST  blocks of pages (format in evidence.py), oldest first
-- KEYS[2]  <prefix>rb:{host}:meta   HASH  generation (rises when the log is rewritten), pages,
--                                              cut: 1 where pages were left out of it
local generation = redis.call('HGET', KEYS[2], 'generation') or '0'
if generation ~= ARGV[1] then
  return 0
end
local left = redis.call('PTTL', KEYS[1])
redis.call('LTRIM', KEYS[1], ARGV[2], -1)
for i = #ARGV, 6, -1 do
  redis.call('LPUSH', KEYS[1], ARGV[i])
end
if left > 0 then
  redis.call('PEXPIRE', KEYS[1], left)
end
redis.call('HINCRBY', KEYS[2], 'generation', 1)
redis.call('HINCRBY', KEYS[2], 'pages', ARGV[4] - ARGV[3])
if ARGV[5] == '1' then
  redis.call('HSET', KEYS[2], 'cut', 1)
end
return 1
