-- withdraw(BASE; buckets, version, struck, spent, rest, every) → nothing; takes documents out of lists
--
-- KEYS[1] BASE   names the shard (buckets.lua)
-- ARGV    number of buckets and version when the buckets were read; packed, 4 bytes each: bucket and offset of each document
--         that is struck there; buckets of which then a quarter is dead; document and key of what has to be looked for, and
--         of all
--
-- Entries are only appended, or `version` says that a function was here: then all are looked for.

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

local function look_for(pairs_)
  for at = 1, #pairs_, 8 do
    local id, key = sub(pairs_, at, at + 3), sub(pairs_, at + 4, at + 7)
    local bucket, entry = place(key), sub(key, 2, 4) .. id
    if entry_at(bytes_of(bucket), sub(key, 2, 4) .. COMMON, 1) then withdraw_common(key, id) end
    while entry_at(bytes_of(bucket), entry, 1) do cut(bucket, key, id) end
  end
end

local function strike(struck, spent)
  for at = 1, #struck, 8 do
    call('SETRANGE', name_of(u4(struck, at)), format('%d', u4(struck, at + 4)), NOBODY)
  end
  entries = entries - #struck / 8
  for at = 1, #spent, 4 do
    local i = u4(spent, at)
    change(i, cleared(bytes_of(i)), 0)
  end
end

define('withdraw', function(ARGV)
  open()
  if buckets == tonumber(ARGV[1]) and (call('GET', BASE .. ':pv') or '0') == ARGV[2] then
    strike(ARGV[3], ARGV[4])
    look_for(ARGV[5])
  else
    look_for(ARGV[6])
  end
  tighten()
  write()
end)
