-- sketches(BASE; ids) → the stored sketches of these ids (4 bytes each), '' where there is none
--
-- KEYS[1] BASE   names the shard (see post.lua)
define('sketches', function(ARGV)
  local reply, sketches = {}, packs('k')
  for at = 1, #ARGV[1], 4 do reply[#reply + 1] = value_of(sketches, u4(ARGV[1], at)) end
  return reply
end)
