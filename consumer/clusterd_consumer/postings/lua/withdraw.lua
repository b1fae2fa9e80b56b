-- withdraw(BASE; (document, keys)*) → how many documents; takes each out of the lists of its keys (4 bytes each)
--
-- KEYS[1] BASE   names the shard (buckets.lua)

-- Take the document out of a common list; an empty one is common no more.
local function withdraw_common(key, id)
  local list = call('GET', common_key(key)) or ''
  local at = place_of(list, id)
  if at then list = sub(list, 1, at - 1) .. sub(list, at + 4) end
  if list == '' then
    call('DEL', common_key(key))
    cut(place(key), key, COMMON)
  elseif at then
    call('SET', common_key(key), list)
  end
end

define('withdraw', function(ARGV)
  open()
  local numbers, count = {}, 0
  for i = 2, #ARGV, 2 do
    local keys = ARGV[i]
    for at = 1, #keys, 4 do
      count = count + 1
      numbers[count] = place(sub(keys, at, at + 3))
    end
  end
  read(numbers)
  count = 0
  for i = 1, #ARGV, 2 do
    local id, keys = ARGV[i], ARGV[i + 1]
    for at = 1, #keys, 4 do
      count = count + 1
      local bucket, key = numbers[count], sub(keys, at, at + 3)
      local bytes = bytes_of(bucket)
      if find(bytes, COMMON, 1, true) and entry_at(bytes, sub(key, 2, 4) .. COMMON, 1) then withdraw_common(key, id) end
      cut(bucket, key, id)
    end
  end
  tighten()
  write()
  return #ARGV / 2
end)
