-- The clusters of each policy: union-find whose trees are never cut, and a ring of members for each.
--
--   BASE:c<p>:<id / 128>   hash: id mod 128 → its element under policy p, neighbours in the ring of its cluster; only of
--                          contents that are not alone
--   BASE:e<p>:<id / 128>   element: parent (0: a root), URLs in the cluster, contents and elements that point here, name
--   BASE:ef<p>, BASE:m     elements that are free again; counter e<p>
--   BASE:a:<id / 16>       hash: id mod 16 → neighbours of a content: 6 bytes each, content and bits of the policies
--
-- A content points at an element, so that a part of a cluster can leave by pointing at a fresh one, at its own cost. A
-- newcomer points at the root itself; elements are made only where two that stood alone meet, and go when nothing points
-- at them. The smaller cluster is linked under the larger, so paths are logarithmic; every look shortens its own.
-- A cluster is called by its first content's number, after a split by a fresh number: names are never used twice.

local CONTENTS, ELEMENTS, graded_count = {}, {}, 0
local ELEMENT, AFTER, BEFORE = 1, 2, 3
local PARENT, SIZE, POINTERS, NAME = 1, 2, 3, 4

local function policies(count)
  graded_count = count
  for p = 0, count - 1 do
    if not CONTENTS[p] then
      CONTENTS[p], ELEMENTS[p] = store('c' .. p, '<I4I4I4'), store('e' .. p, '<I4I4I4I4')
      CONTENTS[p].sparse = true
      begin_store(CONTENTS[p])
      begin_store(ELEMENTS[p])
    end
  end
end

local function new_element(p, name)
  local id = tonumber(call('RPOP', BASE .. ':ef' .. p))
  local e = id and edit(ELEMENTS[p], id)
  if not e then
    id = next_id('e' .. p)
    e = fresh(ELEMENTS[p], id, {0, 0, 0, 0})
  end
  e[PARENT], e[SIZE], e[POINTERS], e[NAME] = 0, 0, 0, name
  return id
end

local function unpoint(p, id)
  while id ~= 0 do
    local e = edit(ELEMENTS[p], id)
    e[POINTERS] = e[POINTERS] - 1
    if e[POINTERS] > 0 then return end
    call('RPUSH', BASE .. ':ef' .. p, id)
    id = e[PARENT]
  end
end

local function point(p, content, id)
  local c = edit(CONTENTS[p], content)
  local before = c[ELEMENT]
  c[ELEMENT] = id
  local e = edit(ELEMENTS[p], id)
  e[POINTERS] = e[POINTERS] + 1
  if before ~= 0 then unpoint(p, before) end
end

-- The root element of a content's cluster, 0 where it is alone.
local function root(p, content)
  if not has(get(NODES, content), JOINED) then return 0 end
  local first = get(CONTENTS[p], content)[ELEMENT]
  local id = first
  if id == 0 then return 0 end
  while get(ELEMENTS[p], id)[PARENT] ~= 0 do id = get(ELEMENTS[p], id)[PARENT] end
  if id ~= first then point(p, content, id) end
  return id
end

local function resize(p, content, by)
  local id = root(p, content)
  if id ~= 0 then
    local e = edit(ELEMENTS[p], id)
    e[SIZE] = e[SIZE] + by
  end
end

-- Size and name of a content's cluster.
local function standing(p, content)
  local id = root(p, content)
  if id == 0 then return get(NODES, content)[CLIVE], content end
  local e = get(ELEMENTS[p], id)
  return e[SIZE], e[NAME]
end

-- Make one ring of the rings of two contents.
local function splice(p, a, b)
  local ca, cb = edit(CONTENTS[p], a), edit(CONTENTS[p], b)
  local an, bn = ca[AFTER], cb[AFTER]
  ca[AFTER], cb[AFTER] = bn, an
  edit(CONTENTS[p], bn)[BEFORE] = a
  edit(CONTENTS[p], an)[BEFORE] = b
end

-- Give a content that stands alone an element, and a ring of its own.
local function settle_alone(p, content, id)
  set(edit(NODES, content), JOINED, true)
  point(p, content, id)
  local c = edit(CONTENTS[p], content)
  c[AFTER], c[BEFORE] = content, content
  local e = edit(ELEMENTS[p], id)
  e[SIZE] = e[SIZE] + get(NODES, content)[CLIVE]
end

-- Make the clusters of two contents one. Returns whether both had more than one page before.
local function join(p, a, b)
  local ra, rb = root(p, a), root(p, b)
  if ra ~= 0 and ra == rb then return false end
  local both = standing(p, a) > 1 and standing(p, b) > 1
  if ra == 0 and rb ~= 0 then a, b, ra, rb = b, a, rb, ra end
  if ra == 0 then
    ra = new_element(p, rb == 0 and math.min(a, b) or a)
    settle_alone(p, a, ra)
  end
  if rb == 0 then
    settle_alone(p, b, ra)
  else
    local ea, eb = edit(ELEMENTS[p], ra), edit(ELEMENTS[p], rb)
    if eb[SIZE] > ea[SIZE] then ra, rb, ea, eb = rb, ra, eb, ea end
    eb[PARENT], ea[POINTERS], ea[SIZE] = ra, ea[POINTERS] + 1, ea[SIZE] + eb[SIZE]
  end
  splice(p, a, b)
  return both
end

-- Take a content out of its ring; its element is left to the caller.
local function unring(p, content)
  local c = edit(CONTENTS[p], content)
  edit(CONTENTS[p], c[BEFORE])[AFTER] = c[AFTER]
  edit(CONTENTS[p], c[AFTER])[BEFORE] = c[BEFORE]
end

-- Take a content out of its cluster for good.
local function leave(p, content)
  if not has(get(NODES, content), JOINED) then return end
  local c = edit(CONTENTS[p], content)
  if c[ELEMENT] == 0 then return end
  resize(p, content, -get(NODES, content)[CLIVE])
  unring(p, content)
  local id = c[ELEMENT]
  c[ELEMENT], c[AFTER], c[BEFORE] = 0, 0, 0
  unpoint(p, id)
end

local function edges_key(content)
  return BASE .. ':a:' .. floor(content / 16), content % 16
end

local function edges(content)
  local key, field = edges_key(content)
  return call('HGET', key, field) or ''
end

local function set_edges(content, bytes)
  local key, field = edges_key(content)
  if bytes == '' then call('HDEL', key, field) else call('HSET', key, field, bytes) end
end

-- Where a neighbour stands in packed edges, nil where it does not.
local function edge_at(bytes, content)
  local id = pack('<I4', content)
  local at = find(bytes, id, 1, true)
  while at and at % 6 ~= 1 do at = find(bytes, id, at + 1, true) end
  return at
end

-- Sizes and names of the clusters of a page, under identical text and under each graded policy: 8 bytes each.
local function places(node)
  local n = get(NODES, node)
  local c = get(NODES, n[REP])
  if not has(c, JOINED) then
    local alone = pack('<I4I4', c[CLIVE], n[REP])
    return pack('<I4I4', n[LIVE], node) .. string.rep(alone, graded_count)
  end
  local bytes = {pack('<I4I4', n[LIVE], node)}
  for p = 0, graded_count - 1 do bytes[p + 2] = pack('<I4I4', standing(p, n[REP])) end
  return table.concat(bytes)
end

local function add_edge(bytes, content, bits)
  local at = edge_at(bytes, content)
  if not at then return bytes .. pack('<I4I2', content, bits) end
  bits = bit.bor(bits, (unpack4('<I2', bytes, at + 4)))
  return sub(bytes, 1, at + 3) .. pack('<I2', bits) .. sub(bytes, at + 6)
end

local function cut_edge(bytes, content)
  local at = edge_at(bytes, content)
  if not at then return bytes end
  return sub(bytes, 1, at - 1) .. sub(bytes, at + 6)
end

-- Add a content's verified edges, and join what they join; notes in `merged` under which policies two clusters became one.
-- An edge to a content that departed in the meantime is dropped: it never comes back.
local function link(content, bytes, merged)
  local mine = edges(content)
  local before = mine
  for at = 1, #bytes, 6 do
    local other, bits = unpack4('<I4I2', bytes, at)
    local n = get(NODES, other)
    if n[REP] == other and not has(n, DEPARTED) and other ~= content then
      mine = add_edge(mine, other, bits)
      set_edges(other, add_edge(edges(other), content, bits))
      for p = 0, graded_count - 1 do
        if floor(bits / 2 ^ p) % 2 == 1 and join(p, content, other) then merged[p] = true end
      end
    end
  end
  if mine ~= before then set_edges(content, mine) end
end
