-- swap(BASE; buckets, version, (bucket, length, low, high, dropped)*) → number of buckets
--
-- KEYS[1] BASE   names the shard (buckets.lua)
-- ARGV    number of buckets and version when the buckets were read; for each that is to be split, in order: its number, the
--         bytes that it had, its halves, and how many entries were dropped
--
-- Does what `grow` does, with halves that the caller has made: they do not pass through Lua entry by entry. It stops at
-- the first bucket that is not as it was read: entries are only appended, or `version` says that a function was here.

define('swap', function(ARGV)
  open()
  if buckets ~= tonumber(ARGV[1]) or (call('GET', BASE .. ':pv') or '0') ~= ARGV[2] then return buckets end
  local before = buckets
  for at = 3, #ARGV, 5 do
    local source = tonumber(ARGV[at])
    if call('STRLEN', name_of(source)) ~= tonumber(ARGV[at + 1]) then break end
    change(source, ARGV[at + 2], -tonumber(ARGV[at + 4]))
    change(source + level, ARGV[at + 3], 0)
    buckets, changed_buckets = buckets + 1, true
  end
  if buckets > before then write() end
  return buckets
end)
