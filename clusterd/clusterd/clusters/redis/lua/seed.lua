-- seed(BASE; first) → 1
--
-- KEYS[1] BASE   the home shard of several (spans.lua)
-- ARGV    first: the numbers of this home's contents begin behind it
define('seed', function(ARGV)
  call('SET', BASE .. ':first', ARGV[1])
  read_counters()
  if counters[N] < tonumber(ARGV[1]) then
    count(N, tonumber(ARGV[1]) - counters[N])
    write_counters()
  end
  return 1
end)
