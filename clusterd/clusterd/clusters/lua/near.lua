-- near(BASE; contents) → for each content (4 bytes each) its packed edges, 6 bytes each: content, bits of the policies
--
-- KEYS[1] BASE   the home shard (forest.lua)
define('near', function(ARGV)
  local reply = {}
  for at = 1, #ARGV[1], 4 do reply[#reply + 1] = edges(u4(ARGV[1], at)) end
  return reply
end)
