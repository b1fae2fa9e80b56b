-- rewrite(BASE; generation, blocks replaced, pages replaced, pages given, 2 × crawls, crawl and what it met on pages that
-- are cut…, block…) → 1 done, 0 not
--
-- Nothing is done where another has rewritten the log. What was appended since the mark stays behind the new blocks. The
-- log lives as long as it would have: where all its blocks are replaced, Redis forgets when it was to expire.
--
-- KEYS[1] BASE   a host, <prefix>rb:{host}
--   BASE:log    LIST  blocks of pages (format in blocks.py), oldest first
--   BASE:meta   HASH  generation (rises when the log is rewritten), pages
--   BASE:met    HASH  generation:crawl → what it met on pages that were cut then (met.py)
define('rewrite', function(ARGV)
  local blocks, meta, cut = BASE .. ':log', BASE .. ':meta', BASE .. ':met'
  if (call('HGET', meta, 'generation') or '0') ~= ARGV[1] then return 0 end
  call('HINCRBY', meta, 'generation', 1)
  local generation = call('HGET', meta, 'generation')
  local left = call('PTTL', blocks)
  call('LTRIM', blocks, ARGV[2], -1)
  local met = tonumber(ARGV[5])
  for i = 6, 5 + met, 2 do call('HSET', cut, generation .. ':' .. ARGV[i], ARGV[i + 1]) end
  for i = #ARGV, 6 + met, -1 do call('LPUSH', blocks, ARGV[i]) end
  if left > 0 then
    call('PEXPIRE', blocks, left)
    call('PEXPIRE', cut, left)
  end
  call('HINCRBY', meta, 'pages', ARGV[4] - ARGV[3])
  return 1
end)
