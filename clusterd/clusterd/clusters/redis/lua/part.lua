-- part(BASE; token, task, move, rest, sides, most) → 1 done; 2 done, and a side is searched once more; -1: the lease is lost,
--         or the task does not wait any more
--
-- KEYS[1] BASE   the home shard (forest.lua, settling.lua)
-- ARGV    token of the lease; the task that was searched ('': it waits in another home); the part that is to
--         move (BASE:mv), or '' where all have moved: then rest, a content of the side that stayed; sides, a content of
--         each that moved; how many splits are kept
--
-- A side that has moved, and that no edge which came meanwhile joins to the rest, is a split: BASE:sp, a list, holds those
-- that are still to be told: policy, name of the rest's cluster, its URLs, and a URL of the side. A side that an edge has
-- joined to the rest again is searched once more: a page that came after the search, and found the side where it stood,
-- may hang on that side alone, and yet have stayed behind and brought it back (move.lua).
--
-- What a search found is only written by who still holds the lease: another settler may have dismissed more since. The
-- other searches of this cluster begin from the rest besides: two sides that stayed where they were, each in a search of
-- its own, lie apart where a side between them has moved. Which searches these are is asked now: since they were left two
-- clusters may have become one.
define('part', function(ARGV)
  if not held(ARGV[1]) then return -1 end
  if ARGV[3] ~= '' then
    if ARGV[2] ~= '' and not call('LPOS', BASE .. ':tasks', ARGV[2]) then return -1 end
    call('SET', BASE .. ':mv', ARGV[3])
    return 1
  end
  if call('LREM', BASE .. ':tasks', 1, ARGV[2]) == 0 then return -1 end
  begin()
  local p = byte(ARGV[2])
  -- (0, and so may be the root of a side: a store that was set back since the search may have lost the pages it found.)
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

  local done = 1
  local function note(side)
    if here ~= 0 and root(p, side) == here then
      call('RPUSH', BASE .. ':tasks', pack('<BI4I4', p, here, side) .. ARGV[4])
      done = 2
      return
    end
    local page = shown_by(side, 0)
    if page == 0 or here == 0 then return end
    local size, name = standing(p, u4(ARGV[4], 1))
    call('RPUSH', BASE .. ':sp', pack('<BI4I4', p, name, size) .. url_of(page))
  end

  for at = 1, #ARGV[5], 4 do note(u4(ARGV[5], at)) end
  call('LTRIM', BASE .. ':sp', -tonumber(ARGV[6]), -1)
  finish()
  return done
end)
