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
  for i = 1, #ARGV, 2 do
    local numbers, keys = {}, ARGV[i + 1]
    for at = 1, #keys, 4 do numbers[#numbers + 1] = place(sub(keys, at, at + 3)) end
    read(numbers)
    for at = 1, #keys, 4 do
      local key, bucket = sub(keys, at, at + 3), numbers[(at + 3) / 4]
      if entry_at(bytes_of(bucket), sub(key, 2, 4) .. COMMON, 1) then withdraw_common(key, ARGV[i]) end
      cut(bucket, key, ARGV[i])
    end
  end
  tighten()
  write()
  return #ARGV / 2
end)
