-- state(BASE; number) → 1
--
-- KEYS[1] BASE   the home shard;  BASE:back   the state of the store: which process of the one server keeps it (pending.py)
define('state', function(ARGV)
  call('SET', BASE .. ':back', ARGV[1])
  return 1
end)
