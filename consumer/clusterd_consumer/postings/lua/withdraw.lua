-- withdraw(BASE; (id, hashes)*) → how many documents; takes each out of the lists of its hashes (4 bytes each)
--
-- KEYS[1] BASE   names the shard (see post.lua)
define('withdraw', function(ARGV)
  local t = open('p')
  for i = 1, #ARGV, 2 do
    prefetch(t, ARGV[i + 1])
    for at = 1, #ARGV[i + 1], 4 do withdraw(t, sub(ARGV[i + 1], at, at + 3), ARGV[i]) end
  end
  close(t)
  return #ARGV / 2
end)
