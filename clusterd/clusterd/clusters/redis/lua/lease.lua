-- lease(BASE; token, milliseconds) → 1, or 0 where another settler is at it
--
-- KEYS[1] BASE   the home shard (settling.lua). Not a plain SET: a full Redis refuses it, and what settles makes room.
define('lease', function(ARGV)
  return call('SET', BASE .. ':lock', ARGV[1], 'NX', 'PX', ARGV[2]) and 1 or 0
end)
