-- looked_at(BASE; host, pages) → how many pages are left that no learner has looked at
--
-- KEYS[1] BASE   <prefix>rb:changed   HASH  host with evidence that no learner has looked at → pages of it
define('looked_at', function(ARGV)
  local left = call('HINCRBY', BASE, ARGV[1], '-' .. ARGV[2])
  if left <= 0 then call('HDEL', BASE, ARGV[1]) end
  return left
end)
