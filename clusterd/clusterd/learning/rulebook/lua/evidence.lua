-- evidence(BASE; generation, start) → generation, pages, blocks, continued (1 or 0), the blocks from start on, whether
-- something was met on pages that were cut (1 or 0), version of the rules ('' where none were saved)
--
-- Where the generation asked for is not the log's, the log was rewritten or begun anew since, and where it has fewer
-- blocks than were read the store came back from the past: all its blocks are returned.
--
-- KEYS[1] BASE   a host, <prefix>rb:{host}
--   BASE:log    LIST  blocks of pages (format in blocks.py), oldest first
--   BASE:meta   HASH  generation (rises when the log is rewritten), pages
--   BASE:met    HASH  there where pages were cut
--   BASE:book   HASH  version
define('evidence', function(ARGV)
  local generation = call('HGET', BASE .. ':meta', 'generation') or '0'
  local pages = call('HGET', BASE .. ':meta', 'pages') or '0'
  local blocks = call('LLEN', BASE .. ':log')
  local continued = generation == ARGV[1] and tonumber(ARGV[2]) <= blocks and 1 or 0
  local start = continued == 1 and ARGV[2] or '0'
  local added = call('LRANGE', BASE .. ':log', start, -1)
  local version = call('HGET', BASE .. ':book', 'version') or ''
  return {generation, pages, blocks, continued, added, call('EXISTS', BASE .. ':met'), version}
end)
