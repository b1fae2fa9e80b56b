-- standings(BASE; slot, from, to) → names of the clusters of the URLs `from` to `to`, 4 bytes each (0: no such URL)
--
-- KEYS[1] BASE   the home shard (records.lua, forest.lua)
-- ARGV    slot: of a graded policy, or -1 for identical text; first and last URL id
define('standings', function(ARGV)
  local p = tonumber(ARGV[1])
  begin()
  local reply = {}
  for u = tonumber(ARGV[2]), tonumber(ARGV[3]) do
    local name = get_field(PAGES, u, NODE)
    if p >= 0 and name ~= 0 then
      local _
      _, name = standing(p, get(NODES, name)[REP])
    end
    reply[#reply + 1] = pack('<I4', name)
  end
  finish()
  return concat(reply)
end)
