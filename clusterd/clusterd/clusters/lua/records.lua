-- Records of fixed width, packed 128 to a string key, read and written through a cache that lives for one call.
--
--   BASE:n:<id / 128>   node: a text, and in the node that represents a content also the content (NODE below)
--   BASE:v:<id / 128>   the current version of a URL (PAGE below)
--   BASE:o:<id>         superseded versions of a URL, in order of their superseding: 40 bytes each (OLD below)
--   BASE:s:<id / 16>    hash: id mod 16 → URL
--   BASE:t, BASE:c, BASE:u   tables (table.lua): text → node, sketch identity → content, URL hash → URL id
--   BASE:m              hash of counters: n nodes, v URLs, versions, contents; and of the tables' sizes
--   BASE:x              set of URL ids with superseded versions
--   BASE:h:<host>       URL ids of a host, 4 bytes each;  BASE:hosts   hash: host → number of URLs
--   BASE:l              hash: label of a crawl or sweep → number;  BASE:q  hash: partition → offset read
--   BASE:g, BASE:tasks, BASE:trash, BASE:mv, BASE:rl, BASE:lock   what waits for `settle` (settling.lua)
--   forest.lua has the clusters.
--
-- The first write to a block asks for its last byte, so that Redis allocates it once and exactly.

local PER = 128
local stores = {}

local function store(name, format, fields)
  local s = {
    key = BASE .. ':' .. name .. ':', format = format, size = struct.size(format), fields = fields, cache = {},
    dirty = {}, made = {},
  }
  stores[#stores + 1] = s
  return s
end

local function get(s, id)
  local record = s.cache[id]
  if record then return record end
  local from = (id % PER) * s.size
  local block = floor(id / PER)
  local bytes = call('GETRANGE', s.key .. block, from, from + s.size - 1)
  if bytes == '' then
    s.made[block] = s.made[block] or false
    bytes = string.rep('\0', s.size)
  end
  record = {unpack4(s.format, bytes)}
  record[#record] = nil
  s.cache[id] = record
  return record
end

local function edit(s, id)
  s.dirty[id] = true
  return get(s, id)
end

local function flush()
  for _, s in ipairs(stores) do
    for id in pairs(s.dirty) do
      local block = floor(id / PER)
      if s.made[block] == false then
        s.made[block] = true
        if call('STRLEN', s.key .. block) == 0 then call('SETRANGE', s.key .. block, PER * s.size - 1, '\0') end
      end
      call('SETRANGE', s.key .. block, (id % PER) * s.size, pack(s.format, unpack(s.cache[id])))
    end
    s.dirty = {}
  end
end

-- NODE. A text: its content (a node id), URLs that show it now, versions that refer to it, first URL of its ring, its
-- neighbours in the chain of the content's texts, its identity, its numbers of shingles and tokens. In the content's
-- own node also: URLs that show the content, versions that refer to it, sketch identity. Then profile and flags.
local NODES = store('n', '<I4I4I4I4I4I4c8I4I4I4I4c8BB')
local REP, LIVE, REFS, HEAD, TNEXT, TPREV, TEXT, SHINGLES, TOKENS, CLIVE, CREFS, SKEY, PROFILE, FLAGS =
  1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14
-- Flags of a content: posted but not yet linked; shown by no URL any more; out of the graph.
local PENDING, DEPARTED, DISMISSED = 1, 2, 4

-- PAGE. Node, neighbours in the ring of URLs that show it, fetch time (8 bytes, big-endian), URL hash, identity of the
-- bytes and of the words, crawl, sweep, status.
local PAGES = store('v', '<I4I4I4c8c8c8c8I4I4I4')
local NODE, NEXT, PREV, AT, UHASH, CONTENT, BAG, CRAWL, SWEEP, STATUS = 1, 2, 3, 4, 5, 6, 7, 8, 9, 10
-- OLD. Node, fetch time, bytes, words, crawl, sweep, status.
local OLD = '<I4c8c8c8I4I4I4'
local OLD_SIZE = 40

local ZERO = string.rep('\0', 8)

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
  return call('HGET', BASE .. ':s:' .. floor(id / 16), id % 16) or ''
end

local function page_by_hash(t, uhash)
  for _, id in ipairs((under(t, string.sub(uhash, 1, 4)))) do
    local number = u4(id, 1)
    if get(PAGES, number)[UHASH] == uhash then return number end
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
