-- dismiss(BASE; token, patience, ready, ghosts, now) → how many were dismissed or given up, -1: the lease is lost
--
-- KEYS[1] BASE   the home shard (records.lua, settling.lua)
-- ARGV    token of the lease; seconds that a pending ghost is waited for from the first try on: after that its message is
--         taken to be lost, and whoever posts it all the same leaves postings that name nothing, which cost their bytes
--         and join nobody; how many of the ghosts were withdrawn from their lists: the rest were pending then;
--         entries of BASE:g, 8 bytes each; the caller's time in seconds: a user may lack the right to ask for the server's
--
-- 1. Cut the edges of all ghosts that were withdrawn, and leave a search (settling.lua) for each of their clusters and
-- each policy under which they held others together: one for ghosts that touch, since what one of them held together may
-- hang on the other. (Neighbours in other homes have been told before: spans/.) 2. Take them out of their clusters.
-- 3. Free them where no version needs them. (Nor is a text of theirs left then: forget.lua.) 4. The pending ones wait in
-- line again.

define('dismiss', function(ARGV)
  if not held(ARGV[1]) then return -1 end
  begin()
  open(SKETCHES)
  local done, leaving, groups, stay = 0, {}, {}, {}

  -- Ghosts that touch under a policy are one group: ghost → another of its group, up to the one that stands for it.
  local function group(p, ghost)
    local up = groups[p]
    while up[ghost] do ghost = up[ghost] end
    return ghost
  end

  local function touch(ghost)
    local mine = edges(ghost)
    for at = 1, #mine, 6 do
      local other, bits = unpack4('<I4I2', mine, at)
      for p = 0, graded - 1 do
        if leaving[other] and joins(bits, p) then
          local a, b = group(p, ghost), group(p, other)
          if a ~= b then groups[p][a] = b end
        end
      end
    end
  end

  -- Note a neighbour of a group that stays.
  local function note(p, ghost, content)
    local first = group(p, ghost)
    local of = stay[p][first]
    if not of then
      of = {seen = {}, packed = {pack('<BI4', p, root(p, ghost))}}
      stay[p][first] = of
    end
    if not of.seen[content] then
      of.seen[content] = true
      of.packed[#of.packed + 1] = pack('<I4', content)
    end
  end

  local function cut_edges(ghost)
    local mine = edges(ghost)
    for at = 1, #mine, 6 do
      local other, bits = unpack4('<I4I2', mine, at)
      if not leaving[other] then
        if not spans.is_remote(other) then set_edges(other, cut_edge(edges(other), ghost)) end
        for p = 0, graded - 1 do
          if joins(bits, p) then note(p, ghost, other) end
        end
      end
    end
    if mine ~= '' then set_edges(ghost, '') end
  end

  local function dismiss(ghost)
    for p = 0, graded - 1 do leave(p, ghost) end
    set(edit(NODES, ghost), DISMISSED, true)
    free_content(ghost)
  end

  for p = 0, graded - 1 do groups[p], stay[p] = {}, {} end
  local gone = {}
  for at = 1, 8 * tonumber(ARGV[3]), 8 do
    local entry = unpack4('<I8', ARGV[4], at)
    local ghost = floor(entry / 256)
    call('LREM', BASE .. ':g', 1, format('%.0f', entry))
    call('HDEL', BASE .. ':wt', ghost)
    local n = get(NODES, ghost)
    if n[REP] ~= ghost then
      call('RPUSH', BASE .. ':trash', ghost)  -- posted once more after it was freed (settling.lua)
    elseif not has(n, DISMISSED) and not leaving[ghost] then
      leaving[ghost], gone[#gone + 1] = true, ghost
    end
    done = done + 1
  end
  for _, ghost in ipairs(gone) do touch(ghost) end
  for _, ghost in ipairs(gone) do cut_edges(ghost) end
  for p = 0, graded - 1 do
    for _, of in pairs(stay[p]) do
      if #of.packed > 2 then call('RPUSH', BASE .. ':tasks', table.concat(of.packed)) end
    end
  end
  for _, ghost in ipairs(gone) do dismiss(ghost) end
  for at = 1 + 8 * tonumber(ARGV[3]), #ARGV[4], 8 do
    local entry = unpack4('<I8', ARGV[4], at)
    local text = format('%.0f', entry)
    call('LREM', BASE .. ':g', 1, text)
    call('RPUSH', BASE .. ':g', text)
    if not is_awaited(floor(entry / 256), tonumber(ARGV[2]), tonumber(ARGV[5])) then done = done + 1 end
  end
  finish()
  return done
end)
