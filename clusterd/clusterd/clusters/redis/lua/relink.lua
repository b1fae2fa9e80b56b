-- relink(BASE; policies, build, (content, edges)*) → which policies there are; where these are the caller's, the edges were added
--
-- KEYS[1] BASE   the home shard (link.lua has the form of the edges)
-- ARGV    policies; build: the node from which a new policy is built on from now
define('relink', function(ARGV)
  if begin() ~= tonumber(ARGV[1]) then return policies.number end
  local ignored = {}
  count(BUILD, tonumber(ARGV[2]) - counters[BUILD])
  for i = 3, #ARGV, 2 do
    local content = tonumber(ARGV[i])
    if not has(get(NODES, content), DEPARTED) then link(content, ARGV[i + 1], ignored) end
  end
  finish()
  return policies.number
end)
