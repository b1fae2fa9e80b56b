-- part(BASE; token, task, move, rest) → 1 done; -1: the lease is lost, or the task does not wait any more
--
-- KEYS[1] BASE   the home shard (forest.lua, settling.lua)
-- ARGV    token of the lease; the task that was searched; the part that is to move (BASE:mv), or '' where all have moved;
--         then rest: a content of the side that stayed
--
-- What a search found is only written by who still holds the lease: another settler may have dismissed more since. The
-- other searches of this cluster begin from the rest besides: two sides that stayed where they were, each in a search of
-- its own, lie apart where a side between them has moved. Which searches these are is asked now: since they were left two
-- clusters may have become one.
define('part', function(ARGV)
  if not held(ARGV[1]) then return -1 end
  if ARGV[3] ~= '' then
    if not call('LPOS', BASE .. ':tasks', ARGV[2]) then return -1 end
    call('SET', BASE .. ':mv', ARGV[3])
    return 1
  end
  if call('LREM', BASE .. ':tasks', 1, ARGV[2]) == 0 then return -1 end
  begin()
  local p = byte(ARGV[2])
  local here = root(p, u4(ARGV[4], 1))

  local function begins_here(task)
    if here == 0 or byte(task) ~= p then return false end
    for at = 6, #task, 4 do
      if root(p, u4(task, at)) == here then return true end
    end
    return false
  end

  for place, task in ipairs(call('LRANGE', BASE .. ':tasks', 0, -1)) do
    if begins_here(task) then call('LSET', BASE .. ':tasks', place - 1, task .. ARGV[4]) end
  end
  finish()
  return 1
end)
