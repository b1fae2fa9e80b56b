-- A multimap from 32-bit hashes to 32-bit ids, in string buckets that grow one at a time (linear hashing, Litwin 1980).
--
--   BASE:<name>:<bucket>   string of 8-byte entries: hash, id (little-endian), oldest first
--   BASE:m                 hash; <name>b buckets, <name>n entries
--
-- With b buckets and L the power of two at most b, a hash lies in bucket h mod 2L, or h mod L where there is no such
-- bucket yet. Adding bucket b splits bucket b - L alone, so growing costs each entry about one move, and no page waits.
-- A bucket is rewritten by SET, never APPEND: Redis doubles a string that is appended to.

local BASE = KEYS[1]
local call = redis.call
local pack, unpack4 = struct.pack, struct.unpack
local floor = math.floor
local FIRST, LOAD = 16, 32

local function u4(s, at)
  return (unpack4('<I4', s, at))
end

local function open(name)
  local m = call('HMGET', BASE .. ':m', name .. 'b', name .. 'n')
  local t = {name = name, key = BASE .. ':' .. name .. ':', b = tonumber(m[1]) or FIRST, n = tonumber(m[2]) or 0}
  t.level = FIRST
  while t.level * 2 <= t.b do t.level = t.level * 2 end
  return t
end

local function bucket(t, h)
  local i = h % (2 * t.level)
  if i >= t.b then i = h % t.level end
  return t.key .. i
end

-- The ids under a hash (4 bytes h), as a list of 4-byte strings; and the bucket's key and bytes.
local function under(t, h)
  local key = bucket(t, u4(h, 1))
  local bytes = call('GET', key) or ''
  local ids, count = {}, 0
  local at = string.find(bytes, h, 1, true)
  while at do
    if at % 8 == 1 then
      count = count + 1
      ids[count] = string.sub(bytes, at + 4, at + 7)
      at = string.find(bytes, h, at + 8, true)
    else
      at = string.find(bytes, h, at + 1, true)
    end
  end
  return ids, key, bytes
end

local function put(t, key, bytes, h, id)
  call('SET', key, bytes .. h .. id)
  t.n = t.n + 1
end

-- Take out an entry; h and id together are 8 bytes. Returns the bucket without it.
local function cut(t, key, bytes, h, id)
  local entry = h .. id
  local at = string.find(bytes, entry, 1, true)
  while at and at % 8 ~= 1 do at = string.find(bytes, entry, at + 1, true) end
  if not at then return bytes end
  t.n = t.n - 1
  bytes = string.sub(bytes, 1, at - 1) .. string.sub(bytes, at + 8)
  if bytes == '' then call('DEL', key) else call('SET', key, bytes) end
  return bytes
end

local function grow(t)
  local source, low, high = t.b - t.level, {}, {}
  local bytes = call('GET', t.key .. source) or ''
  for at = 1, #bytes, 8 do
    local entry = string.sub(bytes, at, at + 7)
    if u4(entry, 1) % (2 * t.level) == source then low[#low + 1] = entry else high[#high + 1] = entry end
  end
  if #high > 0 then
    call('SET', t.key .. t.b, table.concat(high))
    if #low > 0 then call('SET', t.key .. source, table.concat(low)) else call('DEL', t.key .. source) end
  end
  t.b = t.b + 1
  if t.b == 2 * t.level then t.level = t.b end
end

local function shrink(t)
  if t.b == t.level then t.level = t.level / 2 end
  t.b = t.b - 1
  local last = call('GET', t.key .. t.b)
  if last then
    local target = t.key .. (t.b - t.level)
    call('SET', target, (call('GET', target) or '') .. last)
    call('DEL', t.key .. t.b)
  end
end

-- Bring the number of buckets nearer to what the entries need, and remember both.
local function close(t)
  local steps = 0
  while t.n > t.b * LOAD and steps < 1024 do grow(t); steps = steps + 1 end
  while t.n * 4 < t.b * LOAD and t.b > FIRST and steps < 64 do shrink(t); steps = steps + 1 end
  call('HSET', BASE .. ':m', t.name .. 'b', t.b, t.name .. 'n', t.n)
end
