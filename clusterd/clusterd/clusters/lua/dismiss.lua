-- dismiss(BASE; token, patience, ghost*) → how many were dismissed, -1: the lease is lost
--
-- KEYS[1] BASE   the home shard (records.lua, settling.lua)
-- ARGV    token of the lease; seconds that a pending ghost is waited for from the first try on: after that its message is
--         taken to be lost, and whoever posts it all the same leaves postings that name nothing, which cost their bytes
--         and join nobody; entries of BASE:g, departed contents that were withdrawn from their lists
--
-- For each: 1. Cut its edges, and leave a search for each policy under which it held others together. 2. Take it out of
-- its clusters. 3. Free it where no version needs it. Stops after one that leaves a search: that comes first.
define('dismiss', function(ARGV)
  if not held(ARGV[1]) then return -1 end
  local graded = tonumber(call('HGET', BASE .. ':m', 'graded') or 0)
  policies(graded)
  local texts, sketches = open('t'), open('c')
  local searches, dismissed = 0, 0

  local function awaited(ghost)
    if call('SISMEMBER', BASE .. ':w', ghost) == 0 then return false end
    local now = tonumber(call('TIME')[1])
    local since = tonumber(call('HGET', BASE .. ':wt', ghost) or now)
    if now - since < tonumber(ARGV[2]) then
      call('HSETNX', BASE .. ':wt', ghost, now)
      return true
    end
    call('SREM', BASE .. ':w', ghost)
    return false
  end

  local function cut_edges(ghost)
    local mine, near = edges(ghost), {}
    for at = 1, #mine, 6 do
      local other, bits = unpack4('<I4I2', mine, at)
      set_edges(other, cut_edge(edges(other), ghost))
      for p = 0, graded - 1 do
        if floor(bits / 2 ^ p) % 2 == 1 then near[p] = (near[p] or '') .. pack('<I4', other) end
      end
    end
    if mine ~= '' then set_edges(ghost, '') end
    for p, others in pairs(near) do
      if #others > 4 then
        call('RPUSH', BASE .. ':tasks', pack('<B', p) .. others)
        searches = searches + 1
      end
    end
  end

  local function dismiss(ghost)
    cut_edges(ghost)
    for p = 0, graded - 1 do leave(p, ghost) end
    set(edit(NODES, ghost), DISMISSED, true)
    local text = get(NODES, ghost)[TNEXT]
    while text ~= 0 do
      local following = get(NODES, text)[TNEXT]
      if get(NODES, text)[REFS] == 0 then free_text(texts, text) end
      text = following
    end
    free_content(sketches, ghost)
  end

  for i = 3, #ARGV do
    local ghost = floor(tonumber(ARGV[i]) / 256)
    call('LREM', BASE .. ':g', 1, ARGV[i])
    if awaited(ghost) then
      call('RPUSH', BASE .. ':g', ARGV[i])
    else
      call('HDEL', BASE .. ':wt', ghost)
      local n = get(NODES, ghost)
      if n[REP] == ghost and not has(n, DISMISSED) then dismiss(ghost) end
      dismissed = dismissed + 1
    end
    if searches > 0 then break end
  end
  flush()
  close(texts)
  close(sketches)
  return dismissed
end)
