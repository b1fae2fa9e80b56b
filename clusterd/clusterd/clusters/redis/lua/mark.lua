-- mark(BASE; last, number, mark, dropped, number*, [back, (partition, offset)*]) → 1, or 0 where another was at it
--
-- KEYS[1] BASE   the home shard;  BASE:marks   hash: number → mark (marks.py), `last` → the latest number
-- ARGV    last: the latest number that the caller knows; the next number and mark; how many old marks are dropped, and
--         which; where the store goes back: anything, and the positions from which the log is read again; BASE:back counts
--         up
define('mark', function(ARGV)
  local key, rest = BASE .. ':marks', 5 + tonumber(ARGV[4])
  if (call('HGET', key, 'last') or '0') ~= ARGV[1] then return 0 end
  for at = 5, rest - 1 do call('HDEL', key, ARGV[at]) end
  call('HSET', key, 'last', ARGV[2], ARGV[2], ARGV[3])
  if ARGV[rest] then
    call('INCR', BASE .. ':back')
    call('DEL', BASE .. ':q')
    for at = rest + 1, #ARGV, 2 do call('HSET', BASE .. ':q', ARGV[at], ARGV[at + 1]) end
  end
  return 1
end)
