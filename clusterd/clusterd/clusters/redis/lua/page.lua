-- page(BASE; URL hash) → the number of a page (4 bytes), nothing where its URL is unknown
--
-- KEYS[1] BASE   the home shard (records.lua)
define('page', function(ARGV)
  read_counters()
  open(URLS)
  local page = page_by_hash(ARGV[1])
  return page and pack('<I4', page) or ''
end)
