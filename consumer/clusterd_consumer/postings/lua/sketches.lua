-- sketches(BASE; ids) → the stored sketches of these ids (4 bytes each), '' where there is none
--
-- KEYS[1] BASE   names the shard (see post.lua)

local reply = {}
for at = 1, #ARGV[1], 4 do
  local key, field = sketch_key(u4(ARGV[1], at))
  reply[#reply + 1] = call('HGET', key, field) or ''
end
return reply
