-- grow(BASE) → number of buckets; brings it nearer to what the entries need
--
-- KEYS[1] BASE   names the shard (buckets.lua)

define('grow', function()
  open()
  fit()
  write()
  return buckets
end)
