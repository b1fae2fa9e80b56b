-- mark(BASE; last, number, mark, dropped, number*, [build, (partition, offset)*]) → 1, or 0 where another was at it
--
-- KEYS[1] BASE   the home shard;  BASE:marks   hash: number → mark (marks.py), `last` → the latest number
-- ARGV    last: the latest number that the caller knows; the next number and mark; how many old marks are dropped, and
--         which; where the store goes back: the node from which contents are looked up again (0: none), and the positions
--         from which the log is read again; BASE:back counts up
define('mark', function(ARGV)
  local key, rest = BASE .. ':marks', 5 + tonumber(ARGV[4])
  if (call('HGET', key, 'last') or '0') ~= ARGV[1] then return 0 end
  for at = 5, rest - 1 do call('HDEL', key, ARGV[at]) end
  call('HSET', key, 'last', ARGV[2], ARGV[2], ARGV[3])
  if ARGV[rest] then
    local from = tonumber(ARGV[rest])
    if from > 0 then
      begin()
      if counters[BUILD] == 0 or counters[BUILD] > math.min(from, counters[BUILD_TO]) then counters[BUILD] = from end
      counters[BUILD_TO], counted = counters[N], true
      write_counters()
    end
    call('INCR', BASE .. ':back')
    call('DEL', BASE .. ':q')
    for at = rest + 1, #ARGV, 2 do call('HSET', BASE .. ':q', ARGV[at], ARGV[at + 1]) end
  end
  return 1
end)
