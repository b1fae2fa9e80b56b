-- lease(BASE; token, before) → 1, or 0 where another settler is at it
--
-- KEYS[1] BASE   the home shard (settling.lua). Not a plain SET: a full Redis refuses it, and what settles makes room.
-- ARGV    token; the token that the same settler had before, whose lease may never have been given back
define('lease', function(ARGV)
  local there = call('GET', BASE .. ':lock')
  if there and there ~= ARGV[2] then return 0 end
  call('SET', BASE .. ':lock', ARGV[1])
  held(ARGV[1])
  return 1
end)
