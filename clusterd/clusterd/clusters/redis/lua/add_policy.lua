-- add_policy(BASE; name, policy, graded) → all policies as they were given, in order
--
-- KEYS[1] BASE   the home shard;  BASE:policies list of policies;  BASE:i counters
-- ARGV    name; the policy as JSON; 1 where it is decided by a verdict, 0 by identical text
--
-- A graded policy gets the next slot, of which there are 16 (an edge has as many bits): the seventeenth is not added.
-- Contents that are there already are to be looked up again: nodes BUILD to BUILD_TO. Each is a cluster of its own first.
define('add_policy', function(ARGV)
  local known = call('LRANGE', BASE .. ':policies', 0, -1)
  for _, policy in ipairs(known) do
    if cjson.decode(policy).name == ARGV[1] then return known end
  end
  if ARGV[3] == '1' then
    if begin() == 16 then return known end
    counters[CLUSTERS + 3 + graded] = counters[CLUSTERS + 2]
    counters[BUILD], counters[BUILD_TO] = (spans.first() or 0) + 1, counters[N]
    count(GRADED, 1)
    write_counters()
  end
  call('RPUSH', BASE .. ':policies', ARGV[2])
  return call('LRANGE', BASE .. ':policies', 0, -1)
end)
