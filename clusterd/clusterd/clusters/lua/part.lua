-- part(BASE; token, task, move) → 1 done; -1: the lease is lost, or the task is not the first any more
--
-- KEYS[1] BASE   the home shard (settling.lua)
-- ARGV    token of the lease; the task that was searched; the part that is to move (BASE:mv), or '' where all have moved
--
-- What a search found is only written by who still holds the lease: another settler may have dismissed more since.
define('part', function(ARGV)
  if not held(ARGV[1]) then return -1 end
  if call('LINDEX', BASE .. ':tasks', 0) ~= ARGV[2] then return -1 end
  if ARGV[3] == '' then call('LPOP', BASE .. ':tasks') else call('SET', BASE .. ':mv', ARGV[3]) end
  return 1
end)
