-- review(BASE; token, limit) → 1; 0: nothing is left to be reviewed; -1: the lease is lost
--
-- KEYS[1] BASE   a home shard of several (spans.lua);  BASE:review   the content from which pairs are to be looked at again
--
-- A home that came back without its latest writes has lost what joined its clusters with others'. Its edges are there: those
-- to other homes are due again.
define('review', function(ARGV)
  if not held(ARGV[1]) then return -1 end
  local from = tonumber(call('GET', BASE .. ':review'))
  if not from then return 0 end
  begin()
  local last = math.min(from + tonumber(ARGV[2]) - 1, counters[N])
  for content = from, last do
    if get(NODES, content)[REP] == content then
      local mine = edges(content)
      for at = 1, #mine, 6 do
        local other, bits = unpack4('<I4I2', mine, at)
        if spans.is_remote(other) then spans.due('<BI4I4I2', spans.REVIEWED, content, other, bits) end
      end
    end
  end
  if last == counters[N] then call('DEL', BASE .. ':review') else call('SET', BASE .. ':review', whole(last + 1)) end
  return 1
end)
