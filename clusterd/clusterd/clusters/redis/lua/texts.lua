-- texts(BASE; nodes, all) → these texts (4 bytes each), where all is 1 of a content all of its texts, 25 bytes each: node,
--         sketch identity and profile of the content, text, how many pages show it
--
-- KEYS[1] BASE   the home shard (records.lua)
define('texts', function(ARGV)
  begin()
  local reply = {}
  for at = 1, #ARGV[1], 4 do
    local node = u4(ARGV[1], at)
    local content = get(NODES, node)[REP]
    local c, all = get(NODES, content), ARGV[2] == '1' and content == node
    while node ~= 0 and content ~= 0 do
      local n = get(NODES, node)
      reply[#reply + 1] = pack('<I4c8Bc8I4', node, c[SKEY], c[PROFILE], n[TEXT], n[LIVE])
      node = all and n[TNEXT] or 0
    end
  end
  return concat(reply)
end)
