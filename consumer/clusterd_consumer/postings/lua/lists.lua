-- Bounded posting lists over a table: `lists.py` is the reference.
--
--   BASE:p:<bucket>   the table
--   BASE:f:<hash>     a common list, latest last, 4 bytes a document; its table entry has the id COMMON
--   BASE:k:<id / 16>  hash: id mod 16 → stored sketch

local COMMON = '\255\255\255\255'

local function sketch_key(id)
  return BASE .. ':k:' .. floor(id / 16), id % 16
end

local function common_key(h)
  return BASE .. ':f:' .. h
end

-- Add the document to a common list, at most `bound` long; return what it proposes.
local function add_common(h, id, bound, latest)
  local key = common_key(h)
  local ids = call('GET', key) or ''
  local at = string.find(ids, id, 1, true)
  while at and at % 4 ~= 1 do at = string.find(ids, id, at + 1, true) end
  if not at then
    ids = string.sub(ids .. id, -4 * bound)
    call('SET', key, ids)
  end
  return string.sub(ids, -4 * (latest + 1))
end

-- Write the document under a hash, then look up who else is there. Returns packed ids (maybe its own among them).
local function propose(t, h, id, bound, latest)
  local ids, key, bytes = under(t, h)
  if ids[1] == COMMON then return add_common(h, id, bound, latest) end
  local known = false
  for i = 1, #ids do
    if ids[i] == id then known = true end
  end
  if not known then
    if #ids >= bound then
      for i = 1, #ids do bytes = cut(t, key, bytes, h, ids[i]) end
      put(t, key, bytes, h, COMMON)
      call('SET', common_key(h), string.sub(table.concat(ids) .. id, -4 * bound))
      return string.sub(table.concat(ids), -4 * latest)
    end
    put(t, key, bytes, h, id)
  end
  return table.concat(ids)
end

-- Look a hash up without writing.
local function proposed(t, h, latest)
  local ids = under(t, h)
  if ids[1] == COMMON then return string.sub(call('GET', common_key(h)) or '', -4 * (latest + 1)) end
  return table.concat(ids)
end

-- Take the document out of its list; an empty common list is common no more.
local function withdraw(t, h, id)
  local ids, key, bytes = under(t, h)
  if ids[1] ~= COMMON then
    cut(t, key, bytes, h, id)
    return
  end
  local list = call('GET', common_key(h)) or ''
  local at = string.find(list, id, 1, true)
  while at and at % 4 ~= 1 do at = string.find(list, id, at + 1, true) end
  if at then list = string.sub(list, 1, at - 1) .. string.sub(list, at + 4) end
  if list == '' then
    call('DEL', common_key(h))
    cut(t, key, bytes, h, COMMON)
  elseif at then
    call('SET', common_key(h), list)
  end
end
