-- contents(BASE; from, to[, most]) → the contents among the nodes `from` to `to` that URLs show: 5 bytes each, node and
-- profile; where there are more than `most`, the first so many
--
-- KEYS[1] BASE   the home shard (records.lua)
--
-- Blocks are read whole: a record of its own costs a call each, and ten times as much.
define('contents', function(ARGV)
  local reply, size, most, read, bytes, left = {}, NODES.size, tonumber(ARGV[3]), nil, nil, nil

  local function read_block(key)
    read, bytes, left = key, call('GET', key) or '', {}
    local found = bytes == '' and call('HGETALL', key .. ':left') or {}
    for at = 1, #found, 2 do left[found[at]] = found[at + 1] end
  end

  for id = tonumber(ARGV[1]), tonumber(ARGV[2]) do
    local key, at = key_of(NODES, id), id % NODES.per
    if key ~= read then read_block(key) end
    local record = left[whole(at)] or sub(bytes, at * size + 1, (at + 1) * size)
    if #record == size and u4(record, 1) == id then
      local profile, flags = byte(record, size - 1, size)
      if flags % (2 * DEPARTED) < DEPARTED then reply[#reply + 1] = pack('<I4B', id, profile) end
      if #reply == most then break end
    end
  end
  return concat(reply)
end)
