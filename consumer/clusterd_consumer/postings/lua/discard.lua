-- discard(BASE; documents) → nothing; frees the stored sketches of these documents (4 bytes each)
--
-- KEYS[1] BASE   names the shard (blocks.lua)

define('discard', function(ARGV)
  for at = 1, #ARGV[1], 4 do set_sketch(u4(ARGV[1], at), nil) end
  write_blocks()
end)
