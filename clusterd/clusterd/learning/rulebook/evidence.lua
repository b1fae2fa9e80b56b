#!lua
-- evidence(log, meta, met, book; generation, start) → generation, pages, blocks, continued (1 or 0), the blocks from
-- start on, whether something was met on pages that were cut (1 or 0), version of the rules ('' where none were saved)
--
-- Where the generation asked for is not the log's, the log was rewritten or begun anew since, and where it has fewer
-- blocks than were read the store came back from the past: all its blocks are returned.
--
-- KEYS[1]  <prefix>rb:{host}:log    LIST  blocks of pages (format in evidence.py), oldest first
-- KEYS[2]  <prefix>rb:{host}:meta   HASH  generation (rises when the log is rewritten), pages
-- KEYS[3]  <prefix>rb:{host}:met    HASH  there where pages were cut
-- KEYS[4]  <prefix>rb:{host}:book   HASH  version
local generation = redis.call('HGET', KEYS[2], 'generation') or '0'
local pages = redis.call('HGET', KEYS[2], 'pages') or '0'
local blocks = redis.call('LLEN', KEYS[1])
local continued = generation == ARGV[1] and tonumber(ARGV[2]) <= blocks and 1 or 0
local start = continued == 1 and ARGV[2] or '0'
local added = redis.call('LRANGE', KEYS[1], start, -1)
local version = redis.call('HGET', KEYS[4], 'version') or ''
return {generation, pages, blocks, continued, added, redis.call('EXISTS', KEYS[3]), version}
