-- The clusters of each policy: union-find whose trees are never cut, and a ring of members for each.
--
--   BASE:r:<id / 128>   hash: id mod 128 → for each graded policy 12 bytes: element of the content, its neighbours in the
--                       ring of its cluster; only of contents that are not alone
--   BASE:e:<id / 127>   element: parent (0: a root), URLs in the cluster, contents and elements that point here, name. One
--                       that is free: the next free one
--   BASE:a:<id / 64>    hash: id mod 64 → neighbours of a content: 6 bytes each, content and bits of the policies
--
-- A content points at an element, so that a part of a cluster can leave by pointing at a fresh one, at its own cost. A
-- newcomer points at the root itself; elements are made only where two that stood alone meet, and go when nothing points
-- at them. The smaller cluster is linked under the larger, so paths are logarithmic; every look shortens its own.
-- A cluster is called by its first content's number, after a split by a fresh number: names are never used twice.
-- Up to five graded policies a content's place stays within the 64 bytes that Redis packs; beyond, it costs 60 more.

local ELEMENTS = store('e', '<I4I4I4I4', 4, 127, E)
local PARENT, SIZE, POINTERS, NAME = 1, 2, 3, 4
-- In a content's places, from the third of its policy on.
local ELEMENT, AFTER, BEFORE = 1, 2, 3
-- Contents of a hash of places (Redis packs so many), and of neighbours.
local PLACES, NEIGHBOURS = 128, 64

-- The number of the policies (counters.lua), which places are vacant, and the bits of the others; the form of a content's
-- places, and how many bytes of these there are up to the last one in use.
local policies = {number = 0, vacant = {}, in_use = 65535, layout = '<', zeros = '', bytes = 0}
local graded = 0
local places, places_dirty, edges_of, edges_dirty

function policies.know(number)
  graded = number % 32
  policies.layout, policies.zeros = '<' .. rep('I4I4I4', graded), rep('\0', 12 * graded)
  policies.number, policies.in_use, policies.vacant, policies.bytes = number, 65535 - floor(number / 65536), {}, 0
  for p = 0, graded - 1 do
    policies.vacant[p] = floor(policies.in_use / 2 ^ p) % 2 == 0
    if not policies.vacant[p] then policies.bytes = 12 * p + 12 end
  end
end

-- Begin a call that looks at clusters. Returns which policies there are (counters.lua).
local function begin()
  read_counters()
  if policies.number ~= counters[GRADED] then policies.know(counters[GRADED]) end
  for at = 1, #tables do tables[at].used = false end
  places, places_dirty, edges_of, edges_dirty = {}, {}, {}, {}
  return policies.number
end

local function places_key(content)
  return BASE .. ':r:' .. whole(floor(content / PLACES))
end

local function place_of(content)
  local c = places[content]
  if c then return c end
  local bytes = has(get(NODES, content), JOINED) and call('HGET', places_key(content), whole(content % PLACES)) or ''
  if #bytes < #policies.zeros then bytes = bytes .. sub(policies.zeros, #bytes + 1) end
  c = {unpack4(policies.layout, bytes)}
  places[content] = c
  return c
end

local function edit_place(content)
  places_dirty[content] = true
  return place_of(content)
end

local function edges_key(content)
  return BASE .. ':a:' .. whole(floor(content / NEIGHBOURS))
end

local function edges(content)
  local bytes = edges_of[content]
  if not bytes then
    bytes = has(get(NODES, content), JOINED) and call('HGET', edges_key(content), whole(content % NEIGHBOURS)) or ''
    edges_of[content] = bytes
  end
  return bytes
end

local function set_edges(content, bytes)
  edges_of[content], edges_dirty[content] = bytes, true
end

local finish
do
  -- Write what changed of hashes of strings; a value that says nothing is taken out.
  local function write_hashes(dirty, key, per, value)
    local changed = {}
    for content in pairs(dirty) do
      local name, bytes = key(content), value(content)
      if bytes == '' then
        call('HDEL', name, whole(content % per))
      else
        local of = changed[name]
        if not of then
          of = {}
          changed[name] = of
        end
        of[#of + 1] = whole(content % per)
        of[#of + 1] = bytes
      end
    end
    for name, of in pairs(changed) do call('HSET', name, unpack(of)) end
  end

  -- Of each element that is a part of a span, and has changed: its pages are told without a look at it.
  local function size_parts()
    local cache = ELEMENTS.cache
    for id in pairs(ELEMENTS.dirty) do
      local e = cache[id]
      if e[PARENT] >= SPANNED then spans.resize_part(e[PARENT] - SPANNED, e[SIZE]) end
    end
    spans.write_parts()
  end

  local function packed_place(content)
    local bytes = pack(policies.layout, unpack(places[content], 1, 3 * graded))
    if bytes == policies.zeros then return '' end
    local stop = #bytes
    while stop > policies.bytes and sub(bytes, stop - 11, stop) == sub(policies.zeros, 1, 12) do stop = stop - 12 end
    return sub(bytes, 1, stop)
  end

  local function packed_edges(content)
    return edges_of[content]
  end

  -- Write all that the call has changed.
  function finish()
    size_parts()
    for at = 1, #stores do
      if stores[at].used then write_store(stores[at]) end
    end
    write_hashes(places_dirty, places_key, PLACES, packed_place)
    write_hashes(edges_dirty, edges_key, NEIGHBOURS, packed_edges)
    write_urls()
    for at = 1, #tables do
      if tables[at].used then close(tables[at]) end
    end
    write_counters()
  end
end

-- Make a root of this name. Its size and its pointers are counted up by the caller, where they are not given here.
local function new_element(name, size, pointers)
  local id = counters[FREE]
  if id ~= 0 then
    local e = edit(ELEMENTS, id)
    count(FREE, e[PARENT] - id)
    e[PARENT], e[SIZE], e[POINTERS], e[NAME] = 0, size or 0, pointers or 0, name
  else
    id = count(E, 1)
    make(ELEMENTS, id, pack('<I4I4I4I4', 0, size or 0, pointers or 0, name))
  end
  return id
end

local function unpoint(id)
  while id ~= 0 do
    local e = edit(ELEMENTS, id)
    e[POINTERS] = e[POINTERS] - 1
    if e[POINTERS] > 0 then return end
    local parent = e[PARENT]
    if parent >= SPANNED then
      spans.lose(parent - SPANNED)
      parent = 0
    end
    e[PARENT] = counters[FREE]
    count(FREE, id - counters[FREE])
    id = parent
  end
end

local function point(p, content, id)
  local c = edit_place(content)
  local before = c[3 * p + ELEMENT]
  c[3 * p + ELEMENT] = id
  local e = edit(ELEMENTS, id)
  e[POINTERS] = e[POINTERS] + 1
  if before ~= 0 then unpoint(before) end
end

-- The root element of a content's cluster, 0 where it is alone.
local function root(p, content)
  local c = places[content]
  if not c then
    if not has(get(NODES, content), JOINED) then return 0 end
    c = place_of(content)
  end
  local first = c[3 * p + ELEMENT]
  if first == 0 then return 0 end
  local id, parent = first, get(ELEMENTS, first)[PARENT]
  while parent ~= 0 and parent < SPANNED do id, parent = parent, get(ELEMENTS, parent)[PARENT] end
  if id ~= first then point(p, content, id) end
  return id
end

-- The anchor of this home's part of a span, its policy and its root; nil where it has none.
function spans.rooted(span)
  local p, anchor = spans.part(span)
  local id = anchor and p < graded and root(p, anchor) or 0
  if id ~= 0 and get(ELEMENTS, id)[PARENT] == SPANNED + span then return anchor, p, id end
end

local function resize(p, id, by)
  local e = edit(ELEMENTS, id)
  if e[PARENT] == 0 then recount(p + 3, e[SIZE], e[SIZE] + by) end
  e[SIZE] = e[SIZE] + by
end

-- Size and name of a content's cluster; of a part of a span, its own size, and SPANNED + span.
local function standing(p, content)
  local id = root(p, content)
  if id == 0 then return get(NODES, content)[CLIVE], content end
  local e = get(ELEMENTS, id)
  return e[SIZE], e[PARENT] == 0 and e[NAME] or e[PARENT]
end

-- Note that a content is shown by one URL more, or less.
local function weigh(content, by)
  local c = edit(NODES, content)
  local before = c[CLIVE]
  local after = before + by
  c[CLIVE] = after
  recount(2, before, after)
  if has(c, JOINED) then
    for p = 0, graded - 1 do
      local id = root(p, content)
      if id == 0 then recount(p + 3, before, after) else resize(p, id, by) end
    end
  elseif (before > 1) ~= (after > 1) then
    for p = 0, graded - 1 do recount(p + 3, before, after) end
  end
end

-- Make one ring of the rings of two contents.
local function splice(p, a, b)
  local at = 3 * p
  local ca, cb = edit_place(a), edit_place(b)
  local an, bn = ca[at + AFTER], cb[at + AFTER]
  ca[at + AFTER], cb[at + AFTER] = bn, an
  edit_place(bn)[at + BEFORE] = a
  edit_place(an)[at + BEFORE] = b
end

-- Give a content an element, and a ring of its own.
local function settle_alone(p, content, id)
  local c = edit_place(content)
  if not has(get(NODES, content), JOINED) then set(edit(NODES, content), JOINED, true) end
  point(p, content, id)
  c[3 * p + AFTER], c[3 * p + BEFORE] = content, content
  local e = edit(ELEMENTS, id)
  e[SIZE] = e[SIZE] + get(NODES, content)[CLIVE]
end

-- Make the clusters of two contents one. Returns how many pages each of them had; nothing where they were one.
local function join(p, a, b)
  local ra, rb = root(p, a), root(p, b)
  if ra ~= 0 and ra == rb then return end
  local first = a
  if ra == 0 and rb ~= 0 then a, b, ra, rb = b, a, rb, ra end
  local sa = ra == 0 and get(NODES, a)[CLIVE] or get(ELEMENTS, ra)[SIZE]
  local sb = rb == 0 and get(NODES, b)[CLIVE] or get(ELEMENTS, rb)[SIZE]
  -- (Parts of spans are counted by these.)
  local ca, cb = ra ~= 0 and get(ELEMENTS, ra)[PARENT] ~= 0, rb ~= 0 and get(ELEMENTS, rb)[PARENT] ~= 0
  if ra == 0 then
    ra = new_element(math.min(a, b))
    settle_alone(p, a, ra)
  end
  if rb == 0 then
    settle_alone(p, b, ra)
  else
    local ea, eb = edit(ELEMENTS, ra), edit(ELEMENTS, rb)
    if sb > sa then ra, ea, eb = rb, eb, ea end
    ea[PARENT] = spans.merged(ea[PARENT], eb[PARENT])
    eb[PARENT], ea[POINTERS], ea[SIZE] = ra, ea[POINTERS] + 1, sa + sb
  end
  splice(p, a, b)
  if not ca then recount(p + 3, sa, 0) end
  if not cb then recount(p + 3, sb, 0) end
  if not (ca or cb) then recount(p + 3, 0, sa + sb) end
  if a == first then return sa, sb end
  return sb, sa
end

-- Take a content out of its ring; its element is left to the caller.
local function unring(p, content)
  local at, c, id = 3 * p, edit_place(content), root(p, content)
  local before, after = c[at + BEFORE], c[at + AFTER]
  if get(ELEMENTS, id)[PARENT] ~= 0 then spans.hand_over(get(ELEMENTS, id)[PARENT] - SPANNED, content, after) end
  edit_place(before)[at + AFTER] = after
  edit_place(after)[at + BEFORE] = before
end

-- Take a content out of its cluster for good.
local function leave(p, content)
  local id = root(p, content)
  if id == 0 then return end
  local at, c = 3 * p, edit_place(content)
  resize(p, id, -get(NODES, content)[CLIVE])
  unring(p, content)
  c[at + ELEMENT], c[at + AFTER], c[at + BEFORE] = 0, 0, 0
  unpoint(id)
end

-- Sizes and names of the clusters of a page, under identical text and under each graded policy: 8 bytes each.
local function places_of_page(node)
  local n = get(NODES, node)
  local c = get(NODES, n[REP])
  if not has(c, JOINED) then
    return pack('<I4I4', n[LIVE], node) .. rep(pack('<I4I4', c[CLIVE], n[REP]), graded)
  end
  local words = {n[LIVE], node}
  for p = 0, graded - 1 do words[2 * p + 3], words[2 * p + 4] = standing(p, n[REP]) end
  return pack(layout_of(#words), unpack(words))
end
