-- Bounded posting lists over a table: `lists.py` is the reference.
--
--   BASE:p:<bucket>   the table
--   BASE:f:<hash>     a common list, latest last, 4 bytes a document; its table entry has the id COMMON
--   BASE:k:<id / 12>   stored sketches, packed (table.lua)

local COMMON = '\255\255\255\255'

local function common_key(h)
  return BASE .. ':f:' .. h
end

-- Where a document stands in packed ids, nil where it does not.
local function place_of(ids, id)
  local at = find(ids, id, 1, true)
  while at and at % 4 ~= 1 do at = find(ids, id, at + 1, true) end
  return at
end

-- Add the document to a common list, at most `bound` long; return what it proposes.
local function add_common(h, id, bound, latest)
  local key = common_key(h)
  local ids = call('GET', key) or ''
  if not place_of(ids, id) then
    ids = sub(ids .. id, -4 * bound)
    call('SET', key, ids)
  end
  return sub(ids, -4 * (latest + 1))
end

-- Write the document under a hash, then look up who else is there. Returns packed ids (maybe its own among them).
local function propose(t, h, id, bound, latest)
  local ids = under(t, h)
  local count = #ids
  if count == 0 then
    put(t, h, id)
    return ''
  end
  if ids[1] == COMMON then return add_common(h, id, bound, latest) end
  local packed = table.concat(ids)
  if place_of(packed, id) then return packed end
  if count < bound then
    put(t, h, id)
    return packed
  end
  for at = 1, count do cut(t, h, ids[at]) end
  put(t, h, COMMON)
  call('SET', common_key(h), sub(packed .. id, -4 * bound))
  return sub(packed, -4 * latest)
end

-- Look a hash up without writing.
local function proposed(t, h, latest)
  local ids = under(t, h)
  if ids[1] == COMMON then return sub(call('GET', common_key(h)) or '', -4 * (latest + 1)) end
  return table.concat(ids)
end

-- Take the document out of its list; an empty common list is common no more.
local function withdraw(t, h, id)
  if under(t, h)[1] ~= COMMON then
    cut(t, h, id)
    return
  end
  local list = call('GET', common_key(h)) or ''
  local at = place_of(list, id)
  if at then list = sub(list, 1, at - 1) .. sub(list, at + 4) end
  if list == '' then
    call('DEL', common_key(h))
    cut(t, h, COMMON)
  elseif at then
    call('SET', common_key(h), list)
  end
end
