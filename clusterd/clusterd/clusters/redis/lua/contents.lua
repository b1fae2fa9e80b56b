-- contents(BASE; from, to) → the contents among the nodes `from` to `to` that URLs show: 5 bytes each, node and profile
--
-- KEYS[1] BASE   the home shard (records.lua)
--
-- Blocks are read whole: a record of its own costs a call each, and ten times as much.
define('contents', function(ARGV)
  local reply, size, read, bytes = {}, NODES.size, nil, nil
  for id = tonumber(ARGV[1]), tonumber(ARGV[2]) do
    local key, ends = key_of(NODES, id), (id % NODES.per + 1) * size
    if key ~= read then read, bytes = key, call('GET', key) or '' end
    if #bytes >= ends and u4(bytes, ends - size + 1) == id then
      local profile, flags = byte(bytes, ends - 1, ends)
      if flags % (2 * DEPARTED) < DEPARTED then reply[#reply + 1] = pack('<I4B', id, profile) end
    end
  end
  return concat(reply)
end)
