-- parted(BASE; token, task, again, most, split*) → 1; -1: the lease is lost, or the task does not wait any more
--
-- KEYS[1] BASE   the home shard of several (settling.lua)
-- ARGV    token of the lease; a task whose sides have moved (spans: in several homes); the task that is to be searched instead,
--         or ''; how many splits are kept; those that are to be told (part.lua)
define('parted', function(ARGV)
  if not held(ARGV[1]) or call('LREM', BASE .. ':tasks', 1, ARGV[2]) == 0 then return -1 end
  if ARGV[3] ~= '' then call('RPUSH', BASE .. ':tasks', ARGV[3]) end
  for at = 5, #ARGV do call('RPUSH', BASE .. ':sp', ARGV[at]) end
  call('LTRIM', BASE .. ':sp', -tonumber(ARGV[4]), -1)
  return 1
end)
