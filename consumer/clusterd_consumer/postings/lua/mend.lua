-- mend(BASE; bound, latest, (key, document, bucket)*) → for each, the documents that its list proposes, packed
--
-- KEYS[1] BASE   names the shard (buckets.lua)
-- ARGV    bound, latest: of the lists; packed, 4 bytes each: a key, a document that was posted under it, the bucket that
--         its entry was appended to
--
-- 1. An entry that another number of buckets made an entry of the wrong bucket is taken out there. 2. The list holds the
-- document once. 3. A list that grew beyond its bound is common from then on: it keeps the latest `bound`, and proposes to
-- a document `latest` of those before it: the last ones, so that the pages of one batch hold together with those of the
-- batch before; and one a quarter of the list back, so that a giant cluster does not fall into large pieces whenever a few
-- neighbours in a row depart.

-- What a document in this place of a list (packed) is proposed.
local function proposed_at(packed, p, bound, latest)
  local from = math.max(1, p - latest + 1)
  local far = p - math.max(latest, floor(bound / 4))
  local last = sub(packed, 4 * (from - 1) + 1, 4 * (p - 1))
  if far < 1 then far = from - 1 end
  return far < 1 and last or sub(packed, 4 * far - 3, 4 * far) .. last
end

-- Add documents to the list of a common key; returns what it proposes to each of `mine`. What was in the list when it
-- became common is proposed whole: up to then it was a list like any other.
local function common_list(key, ids, mine, bound, latest)
  local full, list, places = call('GET', common_key(key)) or '', {}, {}
  local function append(id)
    if id == COMMON or places[id] then return end
    list[#list + 1] = id
    places[id] = #list
  end
  for at = 1, #full, 4 do append(sub(full, at, at + 3)) end
  local before = #list
  for at = 1, #ids do append(ids[at]) end
  for at = 1, #mine do append(mine[at]) end
  local packed, proposed = table.concat(list), {}
  for at = 1, #mine do
    local id = mine[at]
    local p = places[id]
    if p <= before then
      proposed[id] = sub(full, -4 * (latest + 1))
    elseif before == 0 and p <= bound then
      proposed[id] = sub(packed, 1, 4 * bound)
    else
      proposed[id] = proposed_at(packed, p, bound, latest)
    end
  end
  call('SET', common_key(key), sub(packed, -4 * bound))
  return proposed
end

-- Put the list of a key in order; returns what it proposes to each of `mine`.
local function mend(key, mine, bound, latest)
  local i, head = place(key), sub(key, 2, 4)
  local ids, known, rest, repeated, count = taken(key)
  if not known[COMMON] then
    for at = 1, #mine do
      if not known[mine[at]] then
        put(i, key, mine[at])
        known[mine[at]], ids[#ids + 1] = true, mine[at]
        count = count + 1
      end
    end
    if #ids <= bound then
      local packed, proposed = table.concat(ids), {}
      for at = 1, #mine do proposed[mine[at]] = packed end
      if repeated then change(i, rest .. head .. table.concat(ids, head), #ids - count) end
      return proposed
    end
  end
  if count > 1 or not known[COMMON] then change(i, rest .. head .. COMMON, 1 - count) end
  return common_list(key, ids, mine, bound, latest)
end

define('mend', function(ARGV)
  local bound, latest, items = tonumber(ARGV[1]), tonumber(ARGV[2]), ARGV[3]
  open()
  local keys, mine, reply = {}, {}, {}
  for at = 1, #items, 12 do
    local key, id, written = sub(items, at, at + 3), sub(items, at + 4, at + 7), u4(items, at + 8)
    if written ~= place(key) then cut(written, key, id) end
    if not mine[key] then
      keys[#keys + 1], mine[key] = key, {}
    end
    table.insert(mine[key], id)
  end
  local proposed = {}
  for at = 1, #keys do proposed[keys[at]] = mend(keys[at], mine[keys[at]], bound, latest) end
  for at = 1, #items, 12 do
    reply[#reply + 1] = proposed[sub(items, at, at + 3)][sub(items, at + 4, at + 7)]
  end
  write()
  return reply
end)
