-- keep(BASE; (document, sketch)*) → nothing; stores sketches (a document has 4 bytes) in place of what was there
--
-- KEYS[1] BASE   names the shard (blocks.lua)

define('keep', function(ARGV)
  for at = 1, #ARGV, 2 do set_sketch(u4(ARGV[at], 1), ARGV[at + 1]) end
  write_blocks()
end)
