-- Records of fixed width, packed 128 to a string key, read and written through a cache that lives for one call.
--
--   BASE:n:<id / 128>   node: a text, and in the node that represents a content also the content (NODES below)
--   BASE:v:<id / 128>   the current version of a URL (PAGES below)
--   BASE:o:<id>         superseded versions of a URL, in order of their superseding (OLD below)
--   BASE:s:<id / 12>    URLs, packed (table.lua)
--   BASE:c, BASE:u, BASE:t   tables (table.lua): sketch identity → content, URL hash → URL id, and text → node for those
--                            texts that are not the first of their content
--   BASE:m              hash of counters: n nodes, v URLs, versions, contents; and of the tables' sizes
--   BASE:w              set of pending contents: registered, not linked yet
--   BASE:wt             hash: pending content that departed → when (seconds) it was first to be dismissed
--   BASE:x              set of URL ids with superseded versions
--   BASE:h:<host>       URL ids of a host, 4 bytes each;  BASE:hosts   hash: host → number of URLs
--   BASE:l              hash: label of a crawl or sweep → number;  BASE:q  hash: partition → offset read
--   BASE:g, BASE:tasks, BASE:trash, BASE:mv, BASE:rl, BASE:lock   what waits for `settle` (settling.lua)
--   forest.lua has the clusters.
--
-- Ids are dense, so what one call adds lies side by side and is written at once. The first write to a block is the whole
-- block: Redis then allocates it once and exactly.

local PER = 128
local stores = {}

local function store(name, format)
  local s = {name = name, format = format, size = struct.size(format)}
  s.zeros = string.rep('\0', s.size)
  stores[#stores + 1] = s
  return s
end

local function begin_store(s)
  s.key, s.cache, s.dirty = BASE .. ':' .. s.name .. ':', {}, {}
end

local function decoded(s, bytes)
  local record = {unpack4(s.format, bytes == '' and s.zeros or bytes)}
  record[#record] = nil
  return record
end

local function get(s, id)
  local record = s.cache[id]
  if record then return record end
  if s.sparse then
    record = decoded(s, call('HGET', s.key .. floor(id / PER), id % PER) or '')
  else
    local from = (id % PER) * s.size
    record = decoded(s, call('GETRANGE', s.key .. floor(id / PER), from, from + s.size - 1))
  end
  s.cache[id] = record
  return record
end

local function edit(s, id)
  s.dirty[id] = true
  return get(s, id)
end

-- A record that was never written: nothing is read.
local function fresh(s, id, record)
  s.cache[id], s.dirty[id] = record, true
  return record
end

local function flush_sparse(s)
  for id in pairs(s.dirty) do
    local bytes = pack(s.format, unpack(s.cache[id]))
    if bytes == s.zeros then
      call('HDEL', s.key .. floor(id / PER), id % PER)
    else
      call('HSET', s.key .. floor(id / PER), id % PER, bytes)
    end
  end
end

-- Write one run of neighbouring records of a block.
local function write_run(s, from, run)
  local block, bytes = floor(from / PER), table.concat(run)
  if from % PER == 0 or from == 1 then
    local known = call('STRLEN', s.key .. block)
    if known == 0 then
      local before = from == 1 and s.zeros or ''
      call('SET', s.key .. block, before .. bytes .. string.rep('\0', PER * s.size - #before - #bytes))
      return
    end
  end
  call('SETRANGE', s.key .. block, (from % PER) * s.size, bytes)
end

local function flush_dense(s)
  local ids = {}
  for id in pairs(s.dirty) do ids[#ids + 1] = id end
  table.sort(ids)
  local from, run = nil, {}
  for _, id in ipairs(ids) do
    if from and (id ~= from + #run or id % PER == 0) then
      write_run(s, from, run)
      from, run = nil, {}
    end
    from = from or id
    run[#run + 1] = pack(s.format, unpack(s.cache[id]))
  end
  if from then write_run(s, from, run) end
end

-- Counters of BASE:m that hand out ids, read once and written with the records.
local counters = {}

local function next_id(name)
  local value = (counters[name] or tonumber(call('HGET', BASE .. ':m', name) or 0)) + 1
  counters[name] = value
  return value
end

local function flush()
  for _, s in ipairs(stores) do
    if next(s.dirty) then
      if s.sparse then flush_sparse(s) else flush_dense(s) end
      s.dirty = {}
    end
  end
  for name, value in pairs(counters) do call('HSET', BASE .. ':m', name, value) end
  counters = {}
end

-- NODES. A text: its content (a node id), URLs that show it now, versions that refer to it, first URL of its ring, its
-- neighbours in the chain of the content's texts, its identity, its numbers of shingles and tokens. In the content's
-- own node also: URLs that show the content, versions that refer to it, sketch identity. Then profile and flags.
local NODES = store('n', '<I4I4I4I4I4I4c8I3I3I4I4c8BB')
local REP, LIVE, REFS, HEAD, TNEXT, TPREV, TEXT, SHINGLES, TOKENS, CLIVE, CREFS, SKEY, PROFILE, FLAGS =
  1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14
-- Flags of a content: shown by no URL any more; out of the graph; has been in a cluster with others.
local DEPARTED, DISMISSED, JOINED = 2, 4, 8

-- PAGES. Node, neighbours in the ring of URLs that show it, fetch time (big-endian), second half of the URL hash,
-- identity of the bytes and of the words, crawl, sweep, status.
local PAGES = store('v', '<I4I4I4c6c4c8c8I3I3I2')
local NODE, NEXT, PREV, AT, UHASH, CONTENT, BAG, CRAWL, SWEEP, STATUS = 1, 2, 3, 4, 5, 6, 7, 8, 9, 10
-- OLD. Node, fetch time, bytes, words, crawl, sweep, status.
local OLD = '<I4c6c8c8I3I3I2'
local OLD_SIZE = struct.size(OLD)

local ZERO = string.rep('\0', 8)
local strings

resets[#resets + 1] = function()
  for at = 1, #stores do begin_store(stores[at]) end
  counters, strings = {}, packs('s')
end

local function has(record, flag)
  return floor(record[FLAGS] / flag) % 2 == 1
end

local function set(record, flag, on)
  if has(record, flag) ~= on then record[FLAGS] = record[FLAGS] + (on and flag or -flag) end
end

-- What decides which version of a URL is current: fetch time, then text (an empty text is the smallest).
local function order(at, node)
  local n = get(NODES, node)
  return at .. (n[SHINGLES] == 0 and ZERO or n[TEXT])
end

local function url_of(id)
  return value_of(strings, id)
end

local function page_by_hash(t, uhash)
  local tail = sub(uhash, 5, 8)
  for _, id in ipairs(under(t, sub(uhash, 1, 4))) do
    local page = u4(id, 1)
    if get(PAGES, page)[UHASH] == tail then return page end
  end
end

-- Any URL that shows a content now, other than one.
local function shown_by(content, except)
  local node, steps = content, 0
  repeat
    local n = get(NODES, node)
    if n[HEAD] ~= 0 and n[HEAD] ~= except then return n[HEAD] end
    if n[HEAD] ~= 0 and get(PAGES, n[HEAD])[NEXT] ~= except then return get(PAGES, n[HEAD])[NEXT] end
    node, steps = n[TNEXT], steps + 1
  until node == 0 or steps == 64
  return 0
end
