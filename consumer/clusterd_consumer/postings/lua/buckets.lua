-- The buckets of `buckets.py`, for what is rare: splitting, mending, withdrawing.
--
--   BASE:p:<bucket>   string of 7-byte entries, oldest first: upper 3 bytes of the key, document (little-endian)
--   BASE:pb, BASE:pn  number of buckets, number of entries
--   BASE:pv           counts the calls that may have written a bucket otherwise than by appending to it
--   BASE:f:<key>      a common list, latest last, 4 bytes a document; its bucket has one entry for it, document COMMON
--
-- One bucket is split at a time, so growing costs each entry about one move, and no page waits. Splitting SETs both
-- halves, which gives each the memory of its size; APPEND then doubles that once, which lasts until the next split. So
-- nothing else sets a bucket: what is taken out is overwritten with document 0, and goes when that is about a quarter of
-- the bucket. Buckets are read through a cache that lives for one call.

local pack, floor = struct.pack, math.floor
local find, sub, byte, format = string.find, string.sub, string.byte, string.format
local FIRST, ENTRY, COMMON, NOBODY = 256, 7, '\255\255\255\255', '\0\0\0\0'
-- Entries a bucket: fewer cost more memory for keys, more cost more bytes a look.
local LOAD = 144
-- Arguments of one call at most: Lua unpacks no more than 8,000.
local MOST = 4000

local name, buckets, level, entries, changed_buckets, cache, dirty

local function u4(s, at)
  local a, b, c, d = byte(s, at, at + 3)
  return a + b * 256 + c * 65536 + d * 16777216
end

-- Key of a bucket. (Joining a number to a string would cost four times as much as this.)
local function name_of(i)
  return format(name, i)
end

local function open()
  local known = call('MGET', BASE .. ':pb', BASE .. ':pn')
  buckets, entries = tonumber(known[1] or FIRST), tonumber(known[2] or 0)
  name = string.gsub(BASE, '%%', '%%%%') .. ':p:%d'
  changed_buckets, cache, dirty, level = false, {}, {}, FIRST
  while level * 2 <= buckets do level = level * 2 end
end

-- Read the buckets of these numbers.
local function read(numbers)
  local wanted, count = {}, 0
  for at = 1, #numbers do
    if not cache[numbers[at]] then
      count = count + 1
      wanted[count] = numbers[at]
    end
  end
  for start = 1, count, MOST do
    local keys, most = {}, math.min(count - start + 1, MOST)
    for at = 1, most do keys[at] = name_of(wanted[start + at - 1]) end
    local found = call('MGET', unpack(keys))
    for at = 1, most do cache[wanted[start + at - 1]] = found[at] or '' end
  end
end

local function bytes_of(i)
  if not cache[i] then cache[i] = call('GET', name_of(i)) or '' end
  return cache[i]
end

-- Have a bucket set anew, which changes the number of entries.
local function change(i, bytes, by)
  cache[i], dirty[i], entries = bytes, true, entries + by
end

-- Whether a bucket is to be rid of its dead entries. Counting them would take long: one speaks for the rest, that
-- before which a quarter stand, since the oldest mostly go first.
local function spent(bytes)
  local at = floor(#bytes / ENTRY / 4) * ENTRY
  return sub(bytes, at + 4, at + ENTRY) == NOBODY
end

-- A bucket without its dead entries.
local function cleared(bytes)
  local parts, from = {}, 1
  local at = find(bytes, NOBODY, 1, true)
  while at do
    if at % ENTRY == 4 then
      parts[#parts + 1] = sub(bytes, from, at - 4)
      from, at = at + 4, at + 3
    end
    at = find(bytes, NOBODY, at + 1, true)
  end
  parts[#parts + 1] = sub(bytes, from)
  return table.concat(parts)
end

-- The number of a bucket below `level` with its bits turned round: the order of splitting, and back.
local octets = {}
for i = 0, 255 do
  local bits, rest = 0, i
  for _ = 1, 8 do bits, rest = bits * 2 + rest % 2, floor(rest / 2) end
  octets[i] = bits
end

local function turned(i)
  local high = floor(i / 256)
  local whole = octets[i % 256] * 65536 + octets[high % 256] * 256 + octets[floor(high / 256)]
  return floor(whole * level / 16777216)
end

-- The bucket of a key (4 bytes).
local function place(key)
  local number = u4(key, 1)
  local i = number % level
  return turned(i) < buckets - level and number % (2 * level) or i
end

-- Where the next entry of a key stands in a bucket, nil where there is none.
local function entry_at(bytes, head, from)
  local at = find(bytes, head, from, true)
  while at and at % ENTRY ~= 1 do at = find(bytes, head, at + 1, true) end
  return at
end

-- Take an entry out of a bucket, if it is there.
local function cut(i, key, id)
  local bytes = bytes_of(i)
  local at = entry_at(bytes, sub(key, 2, 4) .. id, 1)
  if not at then return end
  if dirty[i] then
    change(i, sub(bytes, 1, at - 1) .. sub(bytes, at + ENTRY), -1)
    return
  end
  call('SETRANGE', name_of(i), format('%d', at + 2), NOBODY)
  cache[i], entries = nil, entries - 1
  if at == floor(#bytes / ENTRY / 4) * ENTRY + 1 or spent(bytes) then change(i, cleared(bytes_of(i)), 0) end
end

-- Put an entry into a bucket.
local function put(i, key, id)
  local entry = sub(key, 2, 4) .. id
  if dirty[i] then
    change(i, bytes_of(i) .. entry, 1)
  else
    call('APPEND', name_of(i), entry)
    cache[i], entries = nil, entries + 1
  end
end

-- Split the next bucket. An entry that was written here when the bucket was another is dropped: its writer will see.
local function grow()
  local source, low, high, lows, highs = turned(buckets - level), {}, {}, 0, 0
  local bytes, part, own, dropped = bytes_of(source), level / 256, floor(source / 256), 0
  for at = 1, #bytes, ENTRY do
    local x, y, z, a, b, c, d = byte(bytes, at, at + 6)
    local upper = x + y * 256 + z * 65536
    if a + b + c + d == 0 then
      -- dead
    elseif upper % part == own then
      if floor(upper / part) % 2 == 1 then
        highs = highs + 1
        high[highs] = sub(bytes, at, at + ENTRY - 1)
      else
        lows = lows + 1
        low[lows] = sub(bytes, at, at + ENTRY - 1)
      end
    else
      dropped = dropped + 1
    end
  end
  change(source, table.concat(low), -dropped)
  change(source + level, table.concat(high), 0)
  buckets, changed_buckets = buckets + 1, true
  if buckets == 2 * level then level = buckets end
end

local function shrink()
  if buckets == level then level = level / 2 end
  buckets, changed_buckets = buckets - 1, true
  local target = turned(buckets - level)
  local last = bytes_of(target + level)
  change(target + level, '', 0)
  change(target, bytes_of(target) .. last, 0)
end

-- Bring the number of buckets down to what the entries need.
local function tighten()
  local steps = 0
  while entries * 4 < buckets * LOAD and buckets > FIRST and steps < 64 do
    shrink()
    steps = steps + 1
  end
end

-- Bring it nearer to what they need, by a few buckets a call: entry by entry, each takes Lua a tenth of a millisecond and
-- more. (What posts many leaves this to `swap`.)
local function fit()
  local steps = math.min(math.ceil(entries / LOAD) - buckets, 16)
  local ahead = {}
  for order = buckets - level, math.min(buckets - level + steps, level) - 1 do ahead[#ahead + 1] = turned(order) end
  read(ahead)
  for _ = 1, steps do grow() end
  tighten()
end

local function write()
  local pairs_, count, gone = {}, 0, {}
  for i in pairs(dirty) do
    if cache[i] == '' then
      gone[#gone + 1] = name_of(i)
    else
      pairs_[count + 1], pairs_[count + 2] = name_of(i), cache[i]
      count = count + 2
    end
  end
  for at = 1, count, MOST do call('MSET', unpack(pairs_, at, math.min(count, at + MOST - 1))) end
  for at = 1, #gone, MOST do call('DEL', unpack(gone, at, math.min(#gone, at + MOST - 1))) end
  call('SET', BASE .. ':pn', format('%d', entries))
  call('INCR', BASE .. ':pv')
  if changed_buckets then call('SET', BASE .. ':pb', buckets) end
end

-- Where a document stands in packed ids, nil where it does not.
local function place_of(ids, id)
  local at = find(ids, id, 1, true)
  while at and at % 4 ~= 1 do at = find(ids, id, at + 1, true) end
  return at
end

local function common_key(key)
  return BASE .. ':f:' .. key
end
