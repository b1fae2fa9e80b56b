#!lua
-- rewrite(log, meta, met; generation, blocks replaced, pages replaced, pages given, 2 × crawls, crawl and what it met on
-- pages that are cut…, block…) → 1 done, 0 not
--
-- Nothing is done where another has rewritten the log. What was appended since the mark stays behind the new blocks. The
-- log lives as long as it would have: where all its blocks are replaced, Redis forgets when it was to expire.
--
-- KEYS[1]  <prefix>rb:{host}:log    LIST  blocks of pages (format in evidence.py), oldest first
-- KEYS[2]  <prefix>rb:{host}:meta   HASH  generation (rises when the log is rewritten), pages
-- KEYS[3]  <prefix>rb:{host}:met    HASH  generation:crawl → what it met on pages that were cut then (met.py)
local generation = redis.call('HGET', KEYS[2], 'generation') or '0'
if generation ~= ARGV[1] then
  return 0
end
redis.call('HINCRBY', KEYS[2], 'generation', 1)
generation = redis.call('HGET', KEYS[2], 'generation')
local left = redis.call('PTTL', KEYS[1])
redis.call('LTRIM', KEYS[1], ARGV[2], -1)
local met = tonumber(ARGV[5])
for i = 6, 5 + met, 2 do
  redis.call('HSET', KEYS[3], generation .. ':' .. ARGV[i], ARGV[i + 1])
end
for i = #ARGV, 6 + met, -1 do
  redis.call('LPUSH', KEYS[1], ARGV[i])
end
if left > 0 then
  redis.call('PEXPIRE', KEYS[1], left)
  redis.call('PEXPIRE', KEYS[3], left)
end
redis.call('HINCRBY', KEYS[2], 'pages', ARGV[4] - ARGV[3])
return 1
