-- contents(BASE; from, to) → the contents among the nodes `from` to `to` that URLs show: 5 bytes each, node and profile
--
-- KEYS[1] BASE   the home shard (records.lua)
define('contents', function(ARGV)
  local reply = {}
  for id = tonumber(ARGV[1]), tonumber(ARGV[2]) do
    local n = get(NODES, id)
    if n[REP] == id and not has(n, DEPARTED) then reply[#reply + 1] = pack('<I4B', id, n[PROFILE]) end
  end
  return concat(reply)
end)
