-- discard(BASE; ids) → nothing; frees the stored sketches of these ids (4 bytes each)
--
-- KEYS[1] BASE   names the shard (see post.lua)
define('discard', function(ARGV)
  local sketches = packs('k')
  for at = 1, #ARGV[1], 4 do drop_value(sketches, u4(ARGV[1], at)) end
  write_values(sketches)
end)
