-- anew(BASE; given, gap) → 1 where another process of a server keeps the home shard than before, else 0
--
-- KEYS[1] BASE   the home shard;  BASE:process   which process keeps it, on a cluster (numbers.py)
-- ARGV    given: the highest number of a content that the other shards know of; gap: how many may have been given since
--
-- What it may have forgotten are numbers of contents: it goes on behind them. BASE:back becomes another (pending.py), so
-- that what was registered before does not count, and workers read again from the position that it remembers.
define('anew', function(ARGV)
  local known, now, given = call('GET', BASE .. ':process'), process(), tonumber(ARGV[1])
  if not now or known == now then return 0 end
  begin()
  if known or given > math.max(counters[N], spans.first() or 0) then
    counters[N], counted = math.max(counters[N], given) + tonumber(ARGV[2]), true
    write_counters()
  end
  call('SET', BASE .. ':process', now)
  call('SET', BASE .. ':back', tonumber(sub(now, 1, 7), 16))
  return 1
end)
