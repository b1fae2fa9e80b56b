-- What waits for `settle`, and freeing. One settler at a time: the lease BASE:lock holds its token.
--
--   BASE:g       list of ghosts: contents that departed and have not been dismissed, as id * 256 + profile, 0 for one that
--                was never posted (register.lua), 255 where it is not known any more
--   BASE:tasks   list of searches, all left by one call of dismiss.lua: policy (1 byte), element of the cluster at that
--                time (4), former neighbours of dismissed contents (4 each)
--   BASE:mv      a part that moves: policy (1), contents still to move (4 each)
--   BASE:rl      the same part, to be looked at once more for edges that came while it moved: policy (1), contents
--   BASE:clear   nodes from and to which removed policies are to be cleared (clear.lua), 4 bytes each
--   BASE:for     places of the policies that are built (counters.lua), a bit each; absent: contents are looked up for others too
--   BASE:trash   list of contents whose stored sketches are to be discarded
--   BASE:b       hash: block of nodes → records freed there; a block whose records are all free is deleted, and of one
--                with few others these are kept one by one (records.lua): pages that stay as they are would hold all of it

-- Which process of the server this is; nil where this user may not ask.
local function process()
  local said = redis.pcall('INFO', 'server')
  return type(said) == 'string' and string.match(said, 'run_id:(%x+)') or nil
end

-- Whether this is the process that is known to keep the home shard of a cluster (anew.lua; of one Redis none is noted).
local function is_known()
  local known = call('GET', BASE .. ':process')
  return not known or known == (process() or known)
end

-- Whether the store is still in the state (BASE:back) that the first 4 bytes name: else what they begin does not count.
local function is_as(packed)
  return u4(packed, 1) == tonumber(call('GET', BASE .. ':back') or 0) and is_known()
end

-- Let what was posted after it had been dismissed be withdrawn: several had it in hand, and one was late. (One that departed
-- and waits for that may have been withdrawn already: dismissing.py.)
local function withdraw_again(numbers)
  for at = 1, #numbers do
    local id = numbers[at]
    local n = get(NODES, id)
    local profile = n[REP] ~= id and 255 or has(n, DEPARTED) and n[PROFILE]
    if profile then call('RPUSH', BASE .. ':g', format('%.0f', id * 256 + profile)) end
  end
end

-- What was posted in that state is pending no more: these contents (4 bytes each). Returns whether it counts.
local function unpend(packed)
  if not is_as(packed) then return false end
  for start = 5, #packed, 4 * MOST do
    local part, ids = sub(packed, start, start + 4 * MOST - 1), {}
    local numbers = {unpack4('<' .. rep('I4', #part / 4), part)}
    numbers[#part / 4 + 1] = nil
    for at = 1, #numbers do ids[at] = format('%d', numbers[at]) end
    if call('SREM', BASE .. ':w', unpack(ids)) < #ids then withdraw_again(numbers) end
  end
  return true
end

-- Whether a pending content that departed is waited for; noted when it first was. Else it is pending no more. (Nor where
-- that lies ahead by more: a clock that was set back would have it waited for until it is there again.)
local function is_awaited(content, patience, now)
  if call('SISMEMBER', BASE .. ':w', content) == 0 then return false end
  local since = tonumber(call('HGET', BASE .. ':wt', content) or now)
  if math.abs(now - since) < patience then
    call('HSETNX', BASE .. ':wt', content, now)
    return true
  end
  call('SREM', BASE .. ':w', content)
  return false
end

local free_text, free_content
do
  -- Records of a block that take less memory one by one, by half.
  local FEW = 64

  -- Records of a block: numbers begin with 1, or behind another home's, so the first block has fewer.
  local function records(block)
    local first = (spans.first() or 0) + 1
    return floor(first / NODES.per) == block and NODES.per - first % NODES.per or NODES.per
  end

  -- Note that one more number of a block has no record. Returns how many may yet have one; a block of none is deleted.
  local function lacks_one(block, key)
    local left = records(block) - call('HINCRBY', BASE .. ':b', block, 1)
    if left <= 0 then
      call('DEL', key, key .. ':left')
      call('HDEL', BASE .. ':b', block)
    end
    return left
  end

  -- A number that no content has, for the name of a cluster.
  function spans.fresh_number()
    local number = count(N, 1)
    lacks_one(floor(number / NODES.per), key_of(NODES, number))
    return number
  end

  -- Keep what is left of a block one by one; what this call has changed of it is written so as well.
  local function thin(block, key)
    local bytes, left = call('GET', key), {}
    if not bytes then return end
    for at = 0, NODES.per - 1 do
      local record = sub(bytes, at * NODES.size + 1, (at + 1) * NODES.size)
      if record ~= NODES.zeros then left[#left + 1], left[#left + 2] = whole(at), record end
    end
    call('DEL', key)
    if #left > 0 then call('HSET', key .. ':left', unpack(left)) end
    NODES.thin[block] = true
  end

  local function free(id)
    local block, key, at = floor(id / NODES.per), key_of(NODES, id), id % NODES.per
    NODES.dirty[id], NODES.cache[id] = nil, nil
    if call('STRLEN', key) > 0 then
      call('SETRANGE', key, at * NODES.size, NODES.zeros)
    else
      call('HDEL', key .. ':left', whole(at))
    end
    local left = lacks_one(block, key)
    if left > 0 and left <= FEW and block < floor(counters[N] / NODES.per) then thin(block, key) end
  end

  local function unlist(t, hash, id)
    cut(t, hash, pack('<I4', id))
  end

  -- Free a text that no version shows, unless it is the content's own node.
  function free_text(id)
    local n = get(NODES, id)
    if n[REP] == id then return end
    edit(NODES, n[TPREV])[TNEXT] = n[TNEXT]
    if n[TNEXT] ~= 0 then edit(NODES, n[TNEXT])[TPREV] = n[TPREV] end
    unlist(TEXTS, sub(n[TEXT], 1, 4), id)
    free(id)
  end

  -- Free a content that no version shows and that is out of the graph.
  function free_content(id)
    local n = get(NODES, id)
    if n[CREFS] > 0 or not has(n, DISMISSED) or call('SISMEMBER', BASE .. ':w', id) == 1 then return end
    unlist(SKETCHES, sub(n[SKEY], 1, 4), id)
    free(id)
    call('RPUSH', BASE .. ':trash', id)
    if spans.first() then call('SREM', BASE .. ':twins', id) end
    count(CONTENTS, -1)
  end
end

-- Whether the lease is this settler's: then it may be silent for ten seconds more before another takes over (lease.py).
local function held(token)
  if call('GET', BASE .. ':lock') ~= token then return false end
  call('EXPIRE', BASE .. ':lock', 10)
  return true
end
