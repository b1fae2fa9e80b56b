-- discard(BASE; ids) → how many of the stored sketches of these ids (4 bytes each) were there; frees them
--
-- KEYS[1] BASE   names the shard (see post.lua)

local gone = 0
for at = 1, #ARGV[1], 4 do
  local key, field = sketch_key(u4(ARGV[1], at))
  gone = gone + call('HDEL', key, field)
end
return gone
