-- near(BASE; contents) → for each content (4 bytes each) its packed edges, 6 bytes each: content, bits of the policies
--
-- KEYS[1] BASE   the home shard (forest.lua)
define('near', function(ARGV)
  local reply = {}
  for at = 1, #ARGV[1], 4 do
    local content = u4(ARGV[1], at)
    reply[#reply + 1] = call('HGET', edges_key(content), whole(content % NEIGHBOURS)) or ''
  end
  return reply
end)
