-- mend(BASE; bound, latest, (key, document, bucket)*) → for each, the documents that its list proposes, packed; of a common
-- list COMMON besides
--
-- KEYS[1] BASE   names the shard (buckets.lua)
-- ARGV    bound, latest: of the lists; packed, 4 bytes each: a key, a document that was posted under it, the bucket that
--         its entry was appended to
--
-- 1. An entry that another number of buckets made an entry of the wrong bucket is taken out there. 2. The list holds the
-- document once. 3. A list that grew beyond its bound is common from then on: it keeps the latest `bound`, and proposes to
-- a document `latest` of those before it: the last ones, so that the pages of one batch hold together with those of the
-- batch before; and one `bound` back, so that a giant cluster does not fall into large pieces when neighbours in a row
-- depart (of 60,000 every other: the largest piece that comes off has 5; it has 9,192 where that one is bound / 4 back), or
-- when a batch waits in vain for its worker, which died before it was linked.
--
-- Whoever posts in between, a common list is a chain: only the call that asks for a document puts it there. So everybody's
-- predecessors were asked for before, or by this call. Of those that lay in the bucket when the list became common, the first
-- `bound` begin it: some of them were answered natively, the others are yet to ask; who makes it common is proposed them all,
-- which holds them together. Those beyond, and what was appended since, are taken out: they are all yet to ask.

-- The entries of a key in a bucket: the documents in order, each once; which they are; the bucket without them; whether
-- one was repeated; how many entries they were.
local function taken(bytes, head)
  local ids, known, rest, from, repeated, count = {}, {}, {}, 1, false, 0
  local at = entry_at(bytes, head, 1)
  while at do
    local id = sub(bytes, at + 3, at + 6)
    if id ~= NOBODY then
      if known[id] then
        repeated = true
      else
        known[id] = true
        ids[#ids + 1] = id
      end
      rest[#rest + 1] = sub(bytes, from, at - 1)
      from, count = at + ENTRY, count + 1
    end
    at = entry_at(bytes, head, at + ENTRY)
  end
  rest[#rest + 1] = sub(bytes, from)
  return ids, known, table.concat(rest), repeated, count
end

-- What a document in this place of a common list (packed) is proposed; one at the front, those behind it, too.
local function proposed_at(packed, p, bound, latest)
  if p <= latest then return sub(packed, 1, 4 * (latest + 1)) end
  local far = math.max(1, p - bound)
  return sub(packed, 4 * far - 3, 4 * far) .. sub(packed, 4 * (p - latest + 1) - 3, 4 * (p - 1))
end

-- Add documents to the common list of a key, which begins with `first` where it becomes common now; returns what it
-- proposes to each of `mine`.
local function common_list(key, first, mine, bound, latest)
  local full = first or call('GET', common_key(key)) or ''
  local parts, places, length, proposed = {full}, {}, #full / 4, {}
  for at = 1, #mine do
    local known = place_of(full, mine[at])
    if known then
      places[at] = (known + 3) / 4
    else
      length = length + 1
      places[at], parts[#parts + 1] = length, mine[at]
    end
  end
  local packed = table.concat(parts)
  for at = 1, #mine do
    local p = places[at]
    proposed[mine[at]] = (p <= bound + 1 and first or proposed_at(packed, p, bound, latest)) .. COMMON
  end
  call('SET', common_key(key), sub(packed, -4 * bound))
  return proposed
end

-- Take `mine` out of the bucket of a common key, where they mostly lie side by side as they were appended. Returns whether
-- they did.
local function take_appended(i, head, mine)
  local bytes, appended = bytes_of(i), head .. table.concat(mine, head)
  local at = entry_at(bytes, head .. COMMON, 1) and entry_at(bytes, appended, 1)
  if at then change(i, sub(bytes, 1, at - 1) .. sub(bytes, at + #appended), -#mine) end
  return at
end

-- Put the list of a key in order; returns what it proposes to each of `mine`.
local function mend(i, key, mine, bound, latest)
  local head = sub(key, 2, 4)
  if take_appended(i, head, mine) then return common_list(key, nil, mine, bound, latest) end
  local ids, known, rest, repeated, count = taken(bytes_of(i), head)
  for at = 1, known[COMMON] and 0 or #mine do
    if not known[mine[at]] then
      put(i, key, mine[at])
      known[mine[at]], ids[#ids + 1], count = true, mine[at], count + 1
    end
  end
  if known[COMMON] or #ids > bound then
    change(i, rest .. head .. COMMON, 1 - count)
    return common_list(key, not known[COMMON] and table.concat(ids, '', 1, bound), mine, bound, latest)
  end
  local packed, proposed = table.concat(ids), {}
  for at = 1, #mine do proposed[mine[at]] = packed end
  if repeated then change(i, rest .. head .. table.concat(ids, head), #ids - count) end
  return proposed
end

define('mend', function(ARGV)
  local bound, latest, items = tonumber(ARGV[1]), tonumber(ARGV[2]), ARGV[3]
  open()
  local keys, mine, numbers, asked, reply = {}, {}, {}, {}, {}
  for at = 1, #items, 12 do
    local key = sub(items, at, at + 3)
    local of = mine[key]
    if not of then
      of = {at = #keys + 1}
      keys[of.at], numbers[of.at], mine[key] = key, place(key), of
    end
    of[#of + 1] = sub(items, at + 4, at + 7)
    asked[#asked + 1] = of
  end
  read(numbers)
  for at = 1, #asked do
    local key, written = keys[asked[at].at], u4(items, 12 * at - 3)
    if written ~= numbers[asked[at].at] then cut(written, key, sub(items, 12 * at - 7, 12 * at - 4)) end
  end
  for at = 1, #keys do
    local of = mine[keys[at]]
    of.proposed = mend(numbers[at], keys[at], of, bound, latest)
  end
  for at = 1, #asked do reply[at] = asked[at].proposed[sub(items, 12 * at - 7, 12 * at - 4)] end
  write()
  return reply
end)
