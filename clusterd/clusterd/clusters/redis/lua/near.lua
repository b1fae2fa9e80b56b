-- near(BASE; contents[, 1]) → for each content (4 bytes each) its packed edges, 6 bytes each: content, bits of the policies;
--         with 1 a byte each: whether it has any
--
-- KEYS[1] BASE   the home shard (forest.lua)
define('near', function(ARGV)
  local reply = {}
  if ARGV[2] then
    for at = 1, #ARGV[1], 4 do
      local content = u4(ARGV[1], at)
      reply[#reply + 1] = call('HEXISTS', edges_key(content), whole(content % NEIGHBOURS)) == 1 and '\1' or '\0'
    end
    return concat(reply)
  end
  for at = 1, #ARGV[1], 4 do
    local content = u4(ARGV[1], at)
    reply[#reply + 1] = call('HGET', edges_key(content), whole(content % NEIGHBOURS)) or ''
  end
  return reply
end)
