-- forget(BASE; before, looks, offset, URL ids, patience, now) → {forgotten, URLs done, offset in the next}
--
-- KEYS[1] BASE   the home shard (records.lua, settling.lua);  BASE:late   list of contents that were pending when the last
--                version that showed them was forgotten: a later call frees them
-- ARGV    before: superseded versions that were fetched before this time (6 bytes, big-endian) are forgotten
--         (BASE:m forgotten: the latest such time before which one was forgotten)
--         looks: how many versions are looked at in this call; offset: bytes of the first URL's that were looked at before
--         patience: seconds after which a content stays pending no more whose worker died; now: the caller's time
define('forget', function(ARGV)
  begin()
  open(TEXTS)
  open(SKETCHES)
  local gone, looks, offset = 0, tonumber(ARGV[2]), tonumber(ARGV[3])
  local late = BASE .. ':late'
  for _ = 1, math.min(looks, call('LLEN', late)) do
    local content = call('LPOP', late)
    if is_awaited(content, tonumber(ARGV[5]), tonumber(ARGV[6])) then
      call('RPUSH', late, content)
    else
      call('HDEL', BASE .. ':wt', content)
      free_content(tonumber(content))
    end
  end

  local function release(node)
    local n = edit(NODES, node)
    n[REFS] = n[REFS] - 1
    local content = n[REP]
    local c = edit(NODES, content)
    c[CREFS] = c[CREFS] - 1
    if n[REFS] == 0 then free_text(node) end
    if c[CREFS] == 0 and has(c, DISMISSED) and call('SISMEMBER', BASE .. ':w', content) == 1 then
      call('RPUSH', late, content)
    end
    free_content(content)
  end

  -- Look at the next versions of a URL; returns the offset of those that are left, nil where there are none.
  local function look(u)
    local key, kept = BASE .. ':o:' .. u, {}
    local bytes = call('GETRANGE', key, offset, offset + looks * OLD_SIZE - 1)
    for place = 1, #bytes, OLD_SIZE do
      if precedes(sub(bytes, place + 4, place + 9), ARGV[1]) then
        release(u4(bytes, place))
        gone = gone + 1
      else
        kept[#kept + 1] = sub(bytes, place, place + OLD_SIZE - 1)
      end
    end
    looks = looks - #bytes / OLD_SIZE
    if #kept * OLD_SIZE < #bytes then
      local before = offset > 0 and call('GETRANGE', key, 0, offset - 1) or ''
      local left = before .. concat(kept) .. call('GETRANGE', key, offset + #bytes, -1)
      if left == '' then
        call('DEL', key)
        call('SETBIT', BASE .. ':x', whole(u), '0')
      else
        call('SET', key, left)
      end
    end
    if looks == 0 then return offset + #kept * OLD_SIZE end
  end

  local done, rest = 0, 0
  for at = 1, #ARGV[4], 4 do
    rest = look(u4(ARGV[4], at))
    if rest then break end
    done, offset, rest = done + 1, 0, 0
  end
  if gone > 0 and precedes(call('HGET', BASE .. ':m', 'forgotten') or rep('\0', #ARGV[1]), ARGV[1]) then
    call('HSET', BASE .. ':m', 'forgotten', ARGV[1])
  end
  count(VERSIONS, -gone)
  finish()
  return {gone, done, rest}
end)
