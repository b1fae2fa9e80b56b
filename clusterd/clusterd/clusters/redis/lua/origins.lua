-- origins(BASE; slot, contents) → for each content (4 bytes each) 25 bytes: the oldest of it and its neighbours under a
--         graded policy, and the text of that; the content that its cluster is named after (itself, where that is gone, or
--         of another profile), and the text of that; the profile
--
-- KEYS[1] BASE   the home shard (records.lua, forest.lua)
define('origins', function(ARGV)
  local p, reply = tonumber(ARGV[1]), {}
  begin()
  for at = 1, #ARGV[2], 4 do
    local content = u4(ARGV[2], at)
    local oldest, profile, mine, _, name = content, get(NODES, content)[PROFILE], edges(content), standing(p, content)
    for place = 1, #mine, 6 do
      local other, bits = unpack4('<I4I2', mine, place)
      if other < oldest and joins(bits, p) then oldest = other end
    end
    local named = get(NODES, name)
    if named[REP] ~= name or named[PROFILE] ~= profile then name, named = content, get(NODES, content) end
    reply[#reply + 1] = pack('<I4c8I4c8B', oldest, get(NODES, oldest)[TEXT], name, named[TEXT], profile)
  end
  finish()
  return concat(reply)
end)
