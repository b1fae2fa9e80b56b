-- tell(BASE; posted, (partition, known, offset)*) → 1; 0 where the store went back meanwhile, and nothing was done; -2
--         where the position is not what the caller knew (positions.lua), which was not moved then
--
-- KEYS[1] BASE   the home shard (records.lua)
-- ARGV    posted: how often the store had gone back, and the contents that are pending no more (settling.lua);
--         how far each partition of the log was read, and what the store is known to say of it
define('tell', function(ARGV)
  if not unpend(ARGV[1]) then return 0 end
  return move_on(ARGV, 2, #ARGV) and 1 or -2
end)
