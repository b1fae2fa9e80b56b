-- add_policy(BASE; name, policy, graded) → all policies as they were given, in order
--
-- KEYS[1] BASE   the home shard;  BASE:policies list of policies;  BASE:m graded, build, buildto
-- ARGV    name; the policy as JSON; 1 where it is decided by a verdict, 0 by identical text
--
-- A graded policy gets the next slot; contents that are there already are to be looked up again: nodes `build` to `buildto`.
define('add_policy', function(ARGV)
  local known = call('LRANGE', BASE .. ':policies', 0, -1)
  for _, policy in ipairs(known) do
    if cjson.decode(policy).name == ARGV[1] then return known end
  end
  call('RPUSH', BASE .. ':policies', ARGV[2])
  if ARGV[3] == '1' then
    call('HINCRBY', BASE .. ':m', 'graded', 1)
    local nodes = call('HGET', BASE .. ':m', 'n') or 0
    call('HSET', BASE .. ':m', 'build', 1, 'buildto', nodes)
  end
  return call('LRANGE', BASE .. ':policies', 0, -1)
end)
