-- whole(BASE; token, task*) → 1 done; -1: the lease is lost
--
-- KEYS[1] BASE   the home shard (settling.lua)
-- ARGV    token of the lease; tasks whose search found that all holds together
define('whole', function(ARGV)
  if not held(ARGV[1]) then return -1 end
  for i = 2, #ARGV do call('LREM', BASE .. ':tasks', 1, ARGV[i]) end
  return 1
end)
