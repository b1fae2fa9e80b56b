-- clear(BASE; contents) → 1; 0: there was nothing to clear
--
-- KEYS[1] BASE   the home shard (forest.lua, settling.lua)
-- ARGV    contents that are looked at
--
-- Continues to clear what contents hold of policies that were removed, nodes BASE:clear: each leaves its cluster, edges lose
-- the bits, and go where no other is left. Nobody adds to these any more: who knows the policies as they were is refused.
-- Hashes (forest.lua) that end there are written anew: one that held a value too long for Redis to pack it is not packed
-- again by itself.
define('clear', function(ARGV)
  local waiting = call('GET', BASE .. ':clear')
  if not waiting then return 0 end
  begin()
  local from, to = unpack4('<I4I4', waiting)
  local stop = math.min(to, from + tonumber(ARGV[1]) - 1)

  local function leave_vacant(content)
    edit_place(content)
    for p = 0, graded - 1 do
      if policies.vacant[p] and root(p, content) ~= 0 then
        leave(p, content)
        recount(p + 3, 0, get(NODES, content)[CLIVE])
      end
    end
  end

  local function cut_vacant(content)
    local mine, left = edges(content), {}
    for at = 1, #mine, 6 do
      local other, bits = unpack4('<I4I2', mine, at)
      bits = bit.band(bits, policies.in_use)
      if bits > 0 then left[#left + 1] = pack('<I4I2', other, bits) end
    end
    set_edges(content, concat(left))
  end

  local function write_anew(key)
    local all = call('HGETALL', key)
    if #all == 0 then return end
    call('DEL', key)
    call('HSET', key, unpack(all))
  end

  local function write_ended(size, key_of_hash)
    for id = from - from % size, stop, size do
      if stop == to or id + size - 1 <= stop then write_anew(key_of_hash(id)) end
    end
  end

  for id = from, stop do
    if has(get(NODES, id), JOINED) then
      leave_vacant(id)
      cut_vacant(id)
    end
  end
  finish()
  write_ended(PLACES, places_key)
  write_ended(NEIGHBOURS, edges_key)
  if stop < to then
    call('SET', BASE .. ':clear', pack('<I4I4', stop + 1, to))
    return 1
  end
  call('DEL', BASE .. ':clear')
  for _, split in ipairs(call('LRANGE', BASE .. ':sp', 0, -1)) do
    if policies.vacant[byte(split)] then call('LREM', BASE .. ':sp', 1, split) end
  end
  return 1
end)
