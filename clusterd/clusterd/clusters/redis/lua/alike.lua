-- alike(BASE; from, to) → for each of the URLs `from` to `to` 21 bytes: the node of the text that it shows, sketch identity and
--         profile of its content, text (zeros: no such URL)
--
-- KEYS[1] BASE   the home shard (records.lua)
define('alike', function(ARGV)
  begin()
  local reply = {}
  for u = tonumber(ARGV[1]), tonumber(ARGV[2]) do
    local node = get_field(PAGES, u, NODE)
    local n = get(NODES, node)
    local c = get(NODES, n[REP])
    reply[#reply + 1] = pack('<I4c8Bc8', node, c[SKEY], c[PROFILE], n[TEXT])
  end
  return concat(reply)
end)
