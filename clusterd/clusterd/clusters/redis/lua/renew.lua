-- renew(BASE; token) → 1; -1: the lease is lost
--
-- KEYS[1] BASE   the home shard of several (settling.lua)
define('renew', function(ARGV)
  return held(ARGV[1]) and 1 or -1
end)
