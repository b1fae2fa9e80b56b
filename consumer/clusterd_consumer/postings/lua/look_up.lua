-- look_up(BASE; latest, hashes) → the ids that these hashes (4 bytes each) propose, packed; nothing is written
--
-- KEYS[1] BASE   names the shard (see post.lua)
define('look_up', function(ARGV)
  local t, found = open('p'), {}
  prefetch(t, ARGV[2])
  for at = 1, #ARGV[2], 4 do
    found[#found + 1] = proposed(t, sub(ARGV[2], at, at + 3), tonumber(ARGV[1]))
  end
  return table.concat(found)
end)
