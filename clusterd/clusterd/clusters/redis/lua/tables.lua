-- Multimaps from 32-bit hashes to 32-bit ids, in string buckets that grow one at a time (linear hashing, Litwin 1980).
--
--   BASE:<name>:<bucket>   string of 7-byte entries, oldest first: upper 3 bytes of the hash, id (little-endian)
--
-- With b buckets and L the power of two at most b, a hash lies in bucket h mod 2L, or h mod L where there is no such
-- bucket yet. Adding bucket b splits bucket b - L alone, so growing costs each entry about one move, and no page waits.
-- There are never fewer than 256 buckets, so the number of a bucket tells the lowest byte of its hashes.
-- Buckets are read and written through a cache that lives for one call, many in one MGET and one MSET: a call from Lua
-- costs more than what it does. SET, never APPEND: Redis doubles a string that is appended to. Lua hashes every byte that
-- passes it, so buckets are small: at 24 entries a key costs 3 bytes an entry.

local FIRST, LOAD, ENTRY = 256, 24, 7
local tables = {}

local function new_table(name, b_counter, n_counter)
  local t = {name = name, b_counter = b_counter, n_counter = n_counter}
  tables[#tables + 1] = t
  return t
end

-- Sketch identity → content; URL hash → URL id; text → node, for those texts that are not the first of their content.
local SKETCHES, URLS, TEXTS = new_table('c', 8, 9), new_table('u', 10, 11), new_table('t', 12, 13)

-- Begin to use a table in this call.
local function open(t)
  t.b, t.n, t.level = math.max(FIRST, counters[t.b_counter]), counters[t.n_counter], FIRST
  t.cache, t.dirty, t.names, t.used = {}, {}, {}, true
  while t.level * 2 <= t.b do t.level = t.level * 2 end
  return t
end

local function name_of(t, i)
  local name = t.names[i]
  if not name then
    name = format(t.format, i)
    t.names[i] = name
  end
  return name
end

-- Read the buckets of these numbers.
local function read(t, numbers)
  local cache, names, form = t.cache, t.names, t.format
  for start = 1, #numbers, MOST do
    local keys, most = {}, math.min(#numbers - start + 1, MOST)
    for at = 1, most do
      local i = numbers[start + at - 1]
      local name = format(form, i)
      keys[at], names[i] = name, name
    end
    local found = call('MGET', unpack(keys))
    for at = 1, most do cache[numbers[start + at - 1]] = found[at] or '' end
  end
end

-- Read the buckets of hashes, 4 bytes each, before they are asked for one by one. Returns the bucket of each.
local function prefetch(t, hashes)
  local cache, b, level, wide = t.cache, t.b, t.level, 2 * t.level
  local total, wanted, count = #hashes / 4, {}, 0
  local buckets = {unpack4('<' .. rep('I4', total), hashes)}
  for at = 1, total do
    local i = buckets[at] % wide
    if i >= b then i = i - level end
    buckets[at] = i
    if not cache[i] then cache[i], wanted[count + 1], count = '', i, count + 1 end
  end
  read(t, wanted)
  return buckets
end

local function place(t, h)
  local i = u4(h, 1) % (2 * t.level)
  return i < t.b and i or i - t.level
end

local function bytes_of(t, i)
  if not t.cache[i] then read(t, {i}) end
  return t.cache[i]
end

-- The next id under the last three bytes of a hash in its bucket, from a place on, and where to go on; nil: there is none.
local function next_id(bytes, head, from)
  local at = find(bytes, head, from, true)
  while at and at % ENTRY ~= 1 do at = find(bytes, head, at + 1, true) end
  if at then return u4(bytes, at + 3), at + ENTRY end
end

local function bucket_of(t, h)
  return bytes_of(t, place(t, h))
end

local function change(t, i, bytes, by)
  t.cache[i], t.dirty[i], t.n = bytes, true, t.n + by
end

local function put(t, h, id)
  local i = place(t, h)
  change(t, i, bytes_of(t, i) .. sub(h, 2, 4) .. id, 1)
end

local function cut(t, h, id)
  local i = place(t, h)
  local bytes, entry = bytes_of(t, i), sub(h, 2, 4) .. id
  local at = find(bytes, entry, 1, true)
  while at and at % ENTRY ~= 1 do at = find(bytes, entry, at + 1, true) end
  if at then change(t, i, sub(bytes, 1, at - 1) .. sub(bytes, at + ENTRY), -1) end
end

-- (Locals of a block: Lua allows a function no more than 200, and all files that are shared are one.)
local close
do
  -- Split bucket b - L by the bit that L is: an entry holds the hash from its second byte on.
  local function grow(t)
    local source, low, high, lows, highs = t.b - t.level, {}, {}, 0, 0
    local offset, bit_ = 0, t.level / 256
    while bit_ >= 256 do offset, bit_ = offset + 1, bit_ / 256 end
    local bytes = bytes_of(t, source)
    for at = 1, #bytes, ENTRY do
      if byte(bytes, at + offset) / bit_ % 2 >= 1 then
        highs = highs + 1
        high[highs] = sub(bytes, at, at + ENTRY - 1)
      else
        lows = lows + 1
        low[lows] = sub(bytes, at, at + ENTRY - 1)
      end
    end
    change(t, t.b, concat(high), 0)
    change(t, source, concat(low), 0)
    t.b = t.b + 1
    if t.b == 2 * t.level then t.level = t.b end
  end

  local function shrink(t)
    if t.b == t.level then t.level = t.level / 2 end
    t.b = t.b - 1
    local target = t.b - t.level
    change(t, target, bytes_of(t, target) .. bytes_of(t, t.b), 0)
    change(t, t.b, '', 0)
  end

  local function write_table(t)
    local pairs_, count, gone, cache, names = {}, 0, {}, t.cache, t.names
    for i in pairs(t.dirty) do
      local bytes = cache[i]
      if bytes == '' then
        gone[#gone + 1] = name_of(t, i)
      else
        pairs_[count + 1], pairs_[count + 2], count = names[i] or name_of(t, i), bytes, count + 2
      end
    end
    for at = 1, count, MOST do call('MSET', unpack(pairs_, at, math.min(count, at + MOST - 1))) end
    for at = 1, #gone, MOST do call('DEL', unpack(gone, at, math.min(#gone, at + MOST - 1))) end
  end

  -- Read together what is about to be split.
  local function prepare(t, steps)
    local wanted, cache = {}, t.cache
    for i = t.b - t.level, math.min(t.b - t.level + steps, t.level) - 1 do
      if not cache[i] then wanted[#wanted + 1] = i end
    end
    read(t, wanted)
  end

  -- Bring the number of buckets nearer to what the entries need; write what changed.
  function close(t)
    if not next(t.dirty) then return end
    local steps = math.min(math.ceil(t.n / LOAD) - t.b, 1024)
    if steps > 0 then prepare(t, steps) end
    for _ = 1, steps do grow(t) end
    steps = 0
    while t.n * 4 < t.b * LOAD and t.b > FIRST and steps < 64 do
      shrink(t)
      steps = steps + 1
    end
    write_table(t)
    count(t.b_counter, t.b - counters[t.b_counter])
    count(t.n_counter, t.n - counters[t.n_counter])
  end
end
