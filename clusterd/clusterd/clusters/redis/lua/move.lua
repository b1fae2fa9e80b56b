-- move(BASE; token, limit, looking) → contents that are still to move or to be looked at; -1: the lease is lost
--
-- KEYS[1] BASE   the home shard (forest.lua, settling.lua)
-- ARGV    token of the lease; contents at most; 1: the parts of all homes have moved, and are to be looked at once more
--
-- Continues the move in BASE:mv, up to `limit` contents. 1. Each leaves its ring for that of the fresh element. 2. When
-- all have moved, each is looked at once more: an edge out of the part that was added meanwhile (by a page that saw the
-- old elements) joins the two again. An edge added later finds the fresh element. So no order of steps loses an edge.
-- A page that its worker has linked and not united yet (spans/) stands nowhere: it stays so, and what it is united with
-- later it finds where that is by then.
define('move', function(ARGV)
  if not held(ARGV[1]) then return -1 end
  local limit = tonumber(ARGV[2])
  begin()

  local function move(p, element, content, first)
    local old, size = root(p, content), get(NODES, content)[CLIVE]
    if old == element then return end
    resize(p, old, -size)
    unring(p, content)
    settle_alone(p, content, element)
    local now = get(ELEMENTS, element)[SIZE]
    recount(p + 3, now - size, now)
    if first ~= content then splice(p, first, content) end
  end

  local moving = call('GET', BASE .. ':mv')
  if moving then
    local p = unpack4('<B', moving)
    local looked, first, element = {call('GET', BASE .. ':rl') or pack('<B', p)}, nil, nil
    if #looked[1] > 1 then
      -- The fresh element may have been linked under another by now.
      first = u4(looked[1], 2)
      element = root(p, first)
    end
    local stop = math.min(#moving, 1 + 4 * limit)
    for at = 2, stop, 4 do
      local content = u4(moving, at)
      if root(p, content) ~= 0 then
        if not first then first, element = content, new_element(spans.fresh_number()) end
        move(p, element, content, first)
        looked[#looked + 1] = sub(moving, at, at + 3)
      end
    end
    looked = concat(looked)
    finish()
    call('SET', BASE .. ':rl', looked)
    if stop >= #moving then
      call('DEL', BASE .. ':mv')
    else
      call('SET', BASE .. ':mv', pack('<B', p) .. sub(moving, stop + 1))
    end
    return #looked + #moving
  end

  local looked = call('GET', BASE .. ':rl')
  if not looked or ARGV[3] == '0' then return 0 end
  local p = unpack4('<B', looked)
  local stop = math.min(#looked, 1 + 4 * limit)
  for at = 2, stop, 4 do
    local content = u4(looked, at)
    local mine = edges(content)
    for place = 1, #mine, 6 do
      local other, bits = unpack4('<I4I2', mine, place)
      if joins(bits, p) then
        if spans.is_remote(other) then
          spans.due('<BI4I4I2', spans.REVIEWED, content, other, BITS[p])
        else
          join(p, content, other)
        end
      end
    end
  end
  finish()
  if stop >= #looked then
    call('DEL', BASE .. ':rl')
    return 0
  end
  call('SET', BASE .. ':rl', pack('<B', p) .. sub(looked, stop + 1))
  return #looked
end)
