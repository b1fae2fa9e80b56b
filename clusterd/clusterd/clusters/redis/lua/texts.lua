-- texts(BASE; contents) → the texts of these contents (4 bytes each), 25 bytes each: node, sketch identity and profile of the
--         content, text, how many pages show it
--
-- KEYS[1] BASE   the home shard (records.lua)
define('texts', function(ARGV)
  begin()
  local reply = {}
  for at = 1, #ARGV[1], 4 do
    local content = u4(ARGV[1], at)
    local c, node = get(NODES, content), content
    while node ~= 0 and c[REP] == content do
      local n = get(NODES, node)
      reply[#reply + 1] = pack('<I4c8Bc8I4', node, c[SKEY], c[PROFILE], n[TEXT], n[LIVE])
      node = n[TNEXT]
    end
  end
  return concat(reply)
end)
