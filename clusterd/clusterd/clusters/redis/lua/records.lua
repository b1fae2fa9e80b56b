-- Records of fixed width, packed PER to a string key, read and written through a cache that lives for one call.
--
--   BASE:n:<id / 146>   node: a text, and in the node that represents a content also the content (NODES below)
--   BASE:n:<id / 146>:left   in its stead, where most of the block was freed (settling.lua): hash, place in it → node
--   BASE:v:<id / 133>   the current version of a URL (PAGES below)
--   BASE:o:<id>         superseded versions of a URL, in order of time and text (OLD below)
--   BASE:ol:<id>        sorted set: those that came when `OLD.moved` bytes were later; fetch time, text, then as OLD
--   BASE:s:<id / 12>    URLs (strings.lua)
--   BASE:c, BASE:u, BASE:t   tables (tables.lua)
--   BASE:i              counters (counters.lua);  BASE:m   what the store was begun as (founding.py)
--   BASE:w              set of pending contents: registered, not linked yet
--   BASE:back, BASE:back:lock, BASE:marks   the state of the store, a node that was set back (pending.py, marks.py)
--   BASE:process   which process of a server keeps the home shard of a cluster (anew.lua)
--   BASE:wt             hash: pending content that departed → when (seconds) it was first to be dismissed
--   BASE:x              a bit for each URL id, set where it has superseded versions
--   BASE:h:<host>       URL ids of a host, 4 bytes each;  BASE:hosts   set of hosts
--   BASE:l              hash: label of a crawl or sweep → number;  BASE:q  hash: partition → offset read
--   BASE:g, BASE:tasks, BASE:trash, BASE:mv, BASE:rl, BASE:lock   what waits for `settle` (settling.lua)
--   forest.lua has the clusters.
--
-- Ids are dense, so what one call adds lies side by side and is written at once. The first write to a block is its
-- last byte: Redis then allocates it once and exactly. A block and the 6 bytes around it fill what its allocator gives
-- (8 KB, 6 KB, 2 KB: one record more or less would leave up to an eighth unused).

local ZERO = rep('\0', 8)
local stores = {}

-- `counter`: the counter that has the last id given.
local function store(name, layout, fields, per, counter)
  local s = {name = name, layout = layout, size = struct.size(layout), fields = fields, per = per, from = {}, to = {}}
  s.counter = counter
  s.zeros = rep('\0', s.size)
  for at = 0, per - 1 do s.from[at], s.to[at] = whole(at * s.size), whole(at * s.size + s.size - 1) end
  stores[#stores + 1] = s
  return s
end

local function key_of(s, id)
  return format(s.format, floor(id / s.per))
end

local get
do
  -- A record of which there is no block: what is left of that, if anything.
  local function left_of(s, id)
    local bytes = s.thins and call('HGET', key_of(s, id) .. ':left', whole(id % s.per))
    if not bytes then return s.zeros end
    s.thin[floor(id / s.per)] = true
    return bytes
  end

  function get(s, id)
    local record = s.cache[id]
    if record then return record end
    local bytes = s.made[id]
    if not bytes then
      local at = id % s.per
      bytes = call('GETRANGE', key_of(s, id), s.from[at], s.to[at])
      if bytes == '' then bytes = left_of(s, id) end
    end
    record = {unpack4(s.layout, bytes)}
    s.cache[id], s.used = record, true
    return record
  end
end

-- One number of a record of a store that is never thinned; where that was not read, nothing else is.
local function get_field(s, id, field)
  local record = s.cache[id] or s.made[id] and get(s, id)
  if record then return record[field] end
  local from = id % s.per * s.size + 4 * (field - 1)
  local bytes = call('GETRANGE', key_of(s, id), whole(from), whole(from + 3))
  return bytes == '' and 0 or u4(bytes, 1)
end

local function edit(s, id)
  s.dirty[id], s.used = true, true
  return get(s, id)
end

-- A record that was never there, packed, with the next id: nothing is read.
local function make(s, id, bytes)
  s.made[id], s.used = bytes, true
end

-- Write one number of a record of a store that is never thinned; where it was not read, nothing else.
local function set_field(s, id, field, value)
  if s.cache[id] or s.made[id] then
    edit(s, id)[field] = value
  else
    call('SETRANGE', key_of(s, id), whole(id % s.per * s.size + 4 * (field - 1)), pack('<I4', value))
  end
end

local write_store
do
  -- What was made: all ids that the call took from the counter, or none (a number that a span has for a name has no record).
  local function write_made(s)
    local from, last, made = u4(counters.read, 4 * s.counter - 3) + 1, counters[s.counter], s.made
    while from <= last do
      local stop, parts, count = math.min(last, from - from % s.per + s.per - 1), {}, 0
      for id = from, stop do
        count = count + 1
        parts[count] = made[id]
      end
      local key = key_of(s, from)
      if made[from] then
        -- A new block is written from its last byte on: that makes room for the whole, and no zeros pass Lua.
        if from % s.per == 0 or call('STRLEN', key) == 0 then call('SETRANGE', key, s.to[s.per - 1], '\0') end
        call('SETRANGE', key, s.from[from % s.per], concat(parts))
      end
      from = stop + 1
    end
  end

  function write_store(s)
    for id in pairs(s.dirty) do
      local bytes = pack(s.layout, unpack(s.cache[id], 1, s.fields))
      if s.made[id] then
        s.made[id] = bytes
      elseif s.thin[floor(id / s.per)] then
        call('HSET', key_of(s, id) .. ':left', whole(id % s.per), bytes)
      else
        call('SETRANGE', key_of(s, id), s.from[id % s.per], bytes)
      end
    end
    write_made(s)
  end
end

-- NODES. A text: its content (a node id), the first of the URLs that show it, how many do, versions that refer to it. In
-- the content's own node also: URLs that show the content, versions that refer to it. Neighbours in the chain of the
-- content's texts. Sketch identity (of the content's own node), text identity, numbers of shingles and tokens, profile;
-- flags.
local NODES = store('n', '<I4I4I4I4I4I4I4I4c8c8I3I3BB', 14, 146, N)
NODES.thins = true
local REP, HEAD, LIVE, REFS, CLIVE, CREFS, TNEXT, TPREV, SKEY, TEXT, SHINGLES, TOKENS, PROFILE, FLAGS =
  1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14
-- Flags of a content: shown by no URL any more; out of the graph; has been in a cluster with others.
local DEPARTED, DISMISSED, JOINED = 2, 4, 8

-- PAGES. Node, neighbours in the chain of URLs that show it, fetch time (big-endian), second half of the URL hash,
-- identity of the bytes and of the words, crawl, sweep, status.
local PAGES = store('v', '<I4I4I4c6c4c8c8I3I3I2', 10, 133, V)
local NODE, NEXT, PREV, AT, UHASH, CONTENT, BAG, CRAWL, SWEEP, STATUS = 1, 2, 3, 4, 5, 6, 7, 8, 9, 10
-- OLD. Node, fetch time, bytes, words, crawl, sweep, status. (One name: Lua has no more than 200 for all that is shared.)
local OLD = {
  layout = '<I4c6c8c8I3I3I2',
  -- Node and time of one that was forgotten, until the list is written anew (forget.lua). The time is the latest that there
  -- is: whoever forgets by an earlier version of clusterd leaves it alone.
  gone = 4294967295, forgotten = rep('\255', 6),
  -- Most bytes of a list that are moved for one that comes late. One that stands beside begins behind what it is found by.
  moved = 16000, behind = 15,
}
OLD.size = struct.size(OLD.layout)

-- The versions that stand beside a URL's list, one after the other.
function OLD.beside(u)
  local late = call('ZRANGE', BASE .. ':ol:' .. whole(u), '0', '-1')
  for at = 1, #late do late[at] = sub(late[at], OLD.behind) end
  return concat(late)
end

local function has(record, flag)
  return record[FLAGS] % (2 * flag) >= flag
end

local function set(record, flag, on)
  if has(record, flag) ~= on then record[FLAGS] = record[FLAGS] + (on and flag or -flag) end
end

-- What decides which version of a URL is current: fetch time, then text (an empty text is the smallest).
local function order(at, node)
  local n = get(NODES, node)
  return at .. (n[SHINGLES] == 0 and ZERO or n[TEXT])
end

local function page_by_hash(uhash)
  local bytes, head, tail = bucket_of(URLS, uhash), sub(uhash, 2, 4), sub(uhash, 5, 8)
  local page, at = next_id(bytes, head, 1)
  while page do
    if get(PAGES, page)[UHASH] == tail then return page end
    page, at = next_id(bytes, head, at)
  end
end

-- The content of a sketch, nil where it is not known; one that departed serves late versions only.
local function find_content(sketch, profile, late)
  local bytes, head = bucket_of(SKETCHES, sketch), sub(sketch, 2, 4)
  local node, at = next_id(bytes, head, 1)
  while node do
    local n = get(NODES, node)
    if n[SKEY] == sketch and n[PROFILE] == profile and (late or not has(n, DEPARTED)) then return node end
    node, at = next_id(bytes, head, at)
  end
end

-- The node of a text of a content: its own, or another (only those are in the table of texts).
local function find_text(text, content)
  if get(NODES, content)[TEXT] == text then return content end
  local bytes, head = bucket_of(TEXTS.used and TEXTS or open(TEXTS), text), sub(text, 2, 4)
  local node, at = next_id(bytes, head, 1)
  while node do
    local n = get(NODES, node)
    if n[TEXT] == text and n[REP] == content then return node end
    node, at = next_id(bytes, head, at)
  end
end

-- Any URL that shows a content now, other than one.
local function shown_by(content, except)
  local node, steps = content, 0
  repeat
    local n = get(NODES, node)
    if n[HEAD] ~= 0 and n[HEAD] ~= except then return n[HEAD] end
    local following = n[HEAD] ~= 0 and get_field(PAGES, n[HEAD], NEXT) or 0
    if following ~= 0 then return following end
    node, steps = n[TNEXT], steps + 1
  until node == 0 or steps == 64
  return 0
end

do
  local based

  local function rebase()
    based = BASE
    local prefix = string.gsub(BASE, '%%', '%%%%') .. ':'
    for at = 1, #stores do stores[at].format = prefix .. stores[at].name .. ':%d' end
    for at = 1, #tables do tables[at].format = prefix .. tables[at].name .. ':%d' end
  end

  resets[#resets + 1] = function()
    if based ~= BASE then rebase() end
    for at = 1, #stores do
      local s = stores[at]
      if s.used ~= false then s.cache, s.dirty, s.made, s.thin, s.used = {}, {}, {}, {}, false end
    end
  end
end
