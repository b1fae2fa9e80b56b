-- posted(BASE; posted) → those of the texts that were posted (4 bytes each) which were buried before that; nothing else
--
-- KEYS[1] BASE   the second stream (stream.lua)

define('posted', function(ARGV)
  local buried = note_posted(ARGV[1])
  flush()
  return {buried, ''}
end)
