-- Verified pairs: each content has its neighbours (forest.lua, BASE:a), and what they join is one cluster.

-- Where a neighbour stands in packed edges, nil where it does not.
local function edge_at(bytes, content)
  local id = pack('<I4', content)
  local at = find(bytes, id, 1, true)
  while at and at % 6 ~= 1 do at = find(bytes, id, at + 1, true) end
  return at
end

local function add_edge(bytes, content, bits)
  local at = bytes ~= '' and edge_at(bytes, content)
  if not at then return bytes .. pack('<I4I2', content, bits) end
  bits = bit.bor(bits, (unpack4('<I2', bytes, at + 4)))
  return sub(bytes, 1, at + 3) .. pack('<I2', bits) .. sub(bytes, at + 6)
end

local function cut_edge(bytes, content)
  local at = edge_at(bytes, content)
  if not at then return bytes end
  return sub(bytes, 1, at - 1) .. sub(bytes, at + 6)
end

-- Whether edges hold a policy's bit. (One that was removed joins nothing, whatever edges say still: clear.lua.)
local BITS = {[0] = 1}
for p = 1, 16 do BITS[p] = 2 * BITS[p - 1] end
local function joins(bits, p)
  return bits % BITS[p + 1] >= BITS[p] and not policies.vacant[p]
end

-- Add a content's verified edges, and join what they join. Notes in `met` for each policy under which any cluster was
-- joined how many were, and how many of these, or was the content's own, had several pages before.
-- An edge to a content that departed in the meantime is dropped: it never comes back.
local link
do
  -- Let a content that has never been joined enter the ring of another: what `join` comes to for most, written at once.
  local function enter(p, a, sa, b, sb)
    local at, ca, cb, id = 3 * p, places[a], places[b], root(p, b)
    local after, spanning = b, false
    if id == 0 then
      id = new_element(math.min(a, b), sa + sb, 2)
      cb[at + ELEMENT], cb[at + BEFORE] = id, a
    else
      local e = edit(ELEMENTS, id)
      sb, after, spanning = e[SIZE], cb[at + AFTER], e[PARENT] ~= 0
      e[SIZE], e[POINTERS] = sa + sb, e[POINTERS] + 1
      edit_place(after)[at + BEFORE] = a
    end
    cb[at + AFTER], ca[at + ELEMENT], ca[at + AFTER], ca[at + BEFORE] = a, id, after, b
    local more = (spanning and 0 or (sa + sb > 1 and 1 or 0) - (sb > 1 and 1 or 0)) - (sa > 1 and 1 or 0)
    if more ~= 0 then count(CLUSTERS + 3 + p, more) end
    return sa, sb
  end

  local function note(met, p, mine, others)
    local so_far = met[p]
    if not so_far then
      so_far = {0, mine > 1 and 1 or 0}
      met[p] = so_far
    end
    so_far[1], so_far[2] = so_far[1] + 1, so_far[2] + (others > 1 and 1 or 0)
  end

  local function welcome(a, b, bits, met, is_mine)
    local na, nb = edit(NODES, a), get(NODES, b)
    edit_place(a)
    edit_place(b)
    na[FLAGS] = na[FLAGS] + JOINED
    if not has(nb, JOINED) then set(edit(NODES, b), JOINED, true) end
    for p = 0, graded - 1 do
      if joins(bits, p) then
        local sa, sb = enter(p, a, na[CLIVE], b, nb[CLIVE])
        if is_mine then note(met, p, sa, sb) else note(met, p, sb, sa) end
      end
    end
    set_edges(a, pack('<I4I2', b, bits))
    set_edges(b, edges(b) .. pack('<I4I2', a, bits))
  end

  -- Note a neighbour in another home: both are to be united (spans/).
  function spans.bind(content, other, bits)
    bits = bit.band(bits, policies.in_use)
    if bits == 0 then return end
    if not has(get(NODES, content), JOINED) then set(edit(NODES, content), JOINED, true) end
    local before = edges(content)
    local bytes = add_edge(before, other, bits)
    if bytes ~= before then set_edges(content, bytes) end
  end

  function link(content, bytes, met)
    local beyond = false
    for at = 1, #bytes, 6 do
      local other, bits = unpack4('<I4I2', bytes, at)
      local n = not spans.is_remote(other) and get(NODES, other)
      if not n then
        spans.bind(content, other, bits)
        beyond = true
      elseif n[REP] == other and not has(n, DEPARTED) and other ~= content then
        if not has(get(NODES, content), JOINED) then
          welcome(content, other, bits, met, true)
        elseif not has(n, JOINED) then
          welcome(other, content, bits, met, false)
        else
          set_edges(content, add_edge(edges(content), other, bits))
          set_edges(other, add_edge(edges(other), content, bits))
          for p = 0, graded - 1 do
            if joins(bits, p) then
              local mine, others = join(p, content, other)
              if mine then note(met, p, mine, others) end
            end
          end
        end
      end
    end
    if beyond then spans.due('<BI4I4I2', spans.PAIR, content, spans.ALL, 0) end
  end
end
