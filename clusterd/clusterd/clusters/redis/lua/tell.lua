-- tell(BASE; posted, (partition, offset)*) → 1, or 0 where the store went back meanwhile, and nothing was done
--
-- KEYS[1] BASE   the home shard (records.lua)
-- ARGV    posted: how often the store had gone back, and the contents that are pending no more (settling.lua);
--         how far each partition of the log was read
define('tell', function(ARGV)
  if not unpend(ARGV[1]) then return 0 end
  for at = 2, #ARGV, 2 do call('HSET', BASE .. ':q', ARGV[at], ARGV[at + 1]) end
  return 1
end)
