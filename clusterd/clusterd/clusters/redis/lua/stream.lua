-- The texts of a second stream (whole pages beside their main texts), each once, and the pages that show them now.
--
--   BASE:v:<page / 128>   page: its text, its neighbours in the ring of pages that show it, fetch time (big-endian)
--   BASE:n:<text / 128>   text: first page of its ring, pages in it, identity, profile, 1 where it was posted
--   BASE:n:<text / 128>:left   in its stead, where most of them are buried (bury.lua): hash, place in the block → text
--   BASE:p:<bucket>       identity → text (postings/lua/buckets.lua, which goes before this file)
--   BASE:c                number of the last text
--   BASE:g                list of texts that no page shows any more: text * 256 + profile
--
-- Pages have the numbers that the home shard gave them. A text that is shown no more is buried by `settle`.

local unpack4, rep = struct.unpack, string.rep
local PER = 128
local kinds = {}

local function kind(name, form)
  local k = {name = name, form = form, size = struct.size(form)}
  kinds[#kinds + 1] = k
  return k
end

local PAGES, TEXTS = kind('v', '<I4I4I4c6'), kind('n', '<I4I4c8BB')
local TEXT, NEXT, PREV, AT = 1, 2, 3, 4
local HEAD, LIVE, IDENTITY, PROFILE, POSTED = 1, 2, 3, 4, 5

resets[#resets + 1] = function()
  for at = 1, #kinds do kinds[at].records, kinds[at].changed, kinds[at].left = {}, {}, {} end
end

local function block_of(k, id)
  return BASE .. ':' .. k.name .. ':' .. floor(id / PER), id % PER * k.size
end

-- A record of which there is no block: what is left of that, if anything.
local function left_of(k, id, block)
  local bytes = k == TEXTS and call('HGET', block .. ':left', id % PER)
  if bytes then k.left[id] = true end
  return bytes or rep('\0', k.size)
end

local function get(k, id)
  local record = k.records[id]
  if not record then
    local block, from = block_of(k, id)
    local bytes = call('GETRANGE', block, from, from + k.size - 1)
    record = {unpack4(k.form, bytes == '' and left_of(k, id, block) or bytes)}
    record[#record] = nil
    k.records[id] = record
  end
  return record
end

local function edit(k, id)
  k.changed[id] = true
  return get(k, id)
end

-- The first write to a block is the whole block: Redis then gives it its size and no more.
local function flush()
  for at = 1, #kinds do
    local k = kinds[at]
    for id in pairs(k.changed) do
      local block, from = block_of(k, id)
      local bytes = pack(k.form, unpack(k.records[id]))
      if k.left[id] then
        call('HSET', block .. ':left', id % PER, bytes)
      else
        if call('EXISTS', block) == 0 then call('SET', block, rep('\0', PER * k.size)) end
        call('SETRANGE', block, from, bytes)
      end
    end
  end
end

-- The text of an identity, nil where it is not known.
local function text_of(identity, profile)
  local bytes, head = bytes_of(place(identity)), sub(identity, 2, 4)
  local at = entry_at(bytes, head, 1)
  while at do
    local text = u4(bytes, at + 3)
    local t = get(TEXTS, text)
    if text ~= 0 and t[IDENTITY] == identity and t[PROFILE] == profile then return text end
    at = entry_at(bytes, head, at + ENTRY)
  end
end

-- Note which texts were posted (4 bytes each); returns those that were buried before that, so that nobody withdraws them.
local function note_posted(packed)
  local buried = {}
  for at = 1, #packed, 4 do
    local text = u4(packed, at)
    local t = get(TEXTS, text)
    if t[LIVE] > 0 then
      edit(TEXTS, text)[POSTED] = 1
    elseif t[PROFILE] == 0 then
      buried[#buried + 1] = sub(packed, at, at + 3)
    end
  end
  return table.concat(buried)
end
