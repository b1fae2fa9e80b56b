-- rebuild(BASE; from) → 1: contents from this number on are to be looked up again
--
-- KEYS[1] BASE   a home shard of a cluster
define('rebuild', function(ARGV)
  begin()
  local from = tonumber(ARGV[1])
  if counters[BUILD] == 0 or counters[BUILD] > math.min(from, counters[BUILD_TO]) then counters[BUILD] = from end
  counters[BUILD_TO], counted = counters[N], true
  write_counters()
  call('DEL', BASE .. ':for') -- whichever policies there are
  return 1
end)
