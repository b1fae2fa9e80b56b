-- move(BASE; token, limit) → contents that are still to move or to be looked at; -1: the lease is lost
--
-- KEYS[1] BASE   the home shard (forest.lua, settling.lua)
--
-- Continues the move in BASE:mv, up to `limit` contents. 1. Each leaves its ring for that of the fresh element. 2. When
-- all have moved, each is looked at once more: an edge out of the part that was added meanwhile (by a page that saw the
-- old elements) joins the two again. An edge added later finds the fresh element. So no order of steps loses an edge.
define('move', function(ARGV)
  if not held(ARGV[1]) then return -1 end
  local limit = tonumber(ARGV[2])
  local graded = tonumber(call('HGET', BASE .. ':m', 'graded') or 0)
  policies(graded)

  local function move(p, element, content, first)
    local c = get(CONTENTS[p], content)
    if c[ELEMENT] == 0 or c[ELEMENT] == element then return end
    resize(p, content, -get(NODES, content)[CLIVE])
    unring(p, content)
    settle_alone(p, content, element)
    if first ~= content and get(CONTENTS[p], first)[ELEMENT] == element then splice(p, first, content) end
  end

  local moving = call('GET', BASE .. ':mv')
  if moving then
    local p, element = unpack4('<BI4', moving)
    if element == 0 then
      local name = next_id('n')
      call('HINCRBY', BASE .. ':b', floor(name / PER), 1)
      element = new_element(p, name)
    end
    local looked = call('GET', BASE .. ':rl') or pack('<B', p)
    local first = #looked > 1 and u4(looked, 2) or u4(moving, 6)
    local stop = math.min(#moving, 5 + 4 * limit)
    for at = 6, stop, 4 do move(p, element, u4(moving, at), first) end
    looked = looked .. sub(moving, 6, stop)
    flush()
    call('SET', BASE .. ':rl', looked)
    if stop >= #moving then
      call('DEL', BASE .. ':mv')
    else
      call('SET', BASE .. ':mv', pack('<BI4', p, element) .. sub(moving, stop + 1))
    end
    return #looked + #moving
  end

  local looked = call('GET', BASE .. ':rl')
  if not looked then return 0 end
  local p = unpack4('<B', looked)
  local stop = math.min(#looked, 1 + 4 * limit)
  for at = 2, stop, 4 do
    local content = u4(looked, at)
    local mine = edges(content)
    for place = 1, #mine, 6 do
      local other, bits = unpack4('<I4I2', mine, place)
      if floor(bits / 2 ^ p) % 2 == 1 then join(p, content, other) end
    end
  end
  flush()
  if stop >= #looked then
    call('DEL', BASE .. ':rl')
    return 0
  end
  call('SET', BASE .. ':rl', pack('<B', p) .. sub(looked, stop + 1))
  return #looked
end)
