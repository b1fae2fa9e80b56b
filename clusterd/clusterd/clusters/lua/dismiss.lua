-- dismiss(BASE; token, ghost, patience) → 1 dismissed, 0 not yet (it is pending), -1 the lease is lost
--
-- KEYS[1] BASE   the home shard (records.lua, settling.lua)
-- ARGV    token of the lease; an entry of BASE:g, a departed content that was withdrawn from its lists; seconds
--         that a pending one is waited for from the first try on. After that its message is taken to be lost: whoever
--         posts it all the same leaves postings that name nothing, which costs their bytes and joins nobody.
--
-- 1. Cut its edges, and leave a search for each policy under which it held others together. 2. Take it out of its
-- clusters. 3. Free it where no version needs it.

if not held(ARGV[1]) then return -1 end
local ghost = floor(tonumber(ARGV[2]) / 256)
local graded = tonumber(call('HGET', BASE .. ':m', 'graded') or 0)
policies(graded)
local n = get(NODES, ghost)

local function awaited()
  if call('SISMEMBER', BASE .. ':w', ghost) == 0 then return false end
  local now = tonumber(call('TIME')[1])
  local since = tonumber(call('HGET', BASE .. ':wt', ghost) or now)
  if now - since < tonumber(ARGV[3]) then
    call('HSETNX', BASE .. ':wt', ghost, now)
    return true
  end
  call('SREM', BASE .. ':w', ghost)
  return false
end

if awaited() then
  call('LREM', BASE .. ':g', 1, ARGV[2])
  call('RPUSH', BASE .. ':g', ARGV[2])
  return 0
end
call('HDEL', BASE .. ':wt', ghost)
if n[REP] ~= ghost or has(n, DISMISSED) then
  call('LREM', BASE .. ':g', 1, ARGV[2])
  return 1
end

local mine = edges(ghost)
local near = {}
for at = 1, #mine, 6 do
  local other, bits = unpack4('<I4I2', mine, at)
  set_edges(other, cut_edge(edges(other), ghost))
  for p = 0, graded - 1 do
    if floor(bits / 2 ^ p) % 2 == 1 then near[p] = (near[p] or '') .. pack('<I4', other) end
  end
end
if mine ~= '' then set_edges(ghost, '') end
for p, others in pairs(near) do
  if #others > 4 then call('RPUSH', BASE .. ':tasks', pack('<B', p) .. others) end
end
for p = 0, graded - 1 do leave(p, ghost) end
set(edit(NODES, ghost), DISMISSED, true)
local texts, sketches = open('t'), open('c')
local text, following = n[TNEXT], 0
while text ~= 0 do
  following = get(NODES, text)[TNEXT]
  if get(NODES, text)[REFS] == 0 then free_text(texts, text) end
  text = following
end
free_content(sketches, ghost)
flush()
close(texts)
close(sketches)
call('LREM', BASE .. ':g', 1, ARGV[2])
return 1
