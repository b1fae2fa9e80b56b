-- forget(BASE; before, looks, offset, URL ids, patience, now) → {forgotten, URLs done, offset in the next}
--
-- KEYS[1] BASE   the home shard (records.lua, settling.lua);  BASE:late   list of contents that were pending when the last
--                version that showed them was forgotten: a later call frees them
-- ARGV    before: superseded versions that were fetched before this time (6 bytes, big-endian) are forgotten
--         (BASE:m forgotten: the latest such time before which one was forgotten)
--         looks: how many versions are looked at in this call; offset: as it was returned for the first URL, else 0
--         patience: seconds after which a content stays pending no more whose worker died; now: the caller's time
define('forget', function(ARGV)
  begin()
  open(TEXTS)
  open(SKETCHES)
  local gone, looks, offset = 0, tonumber(ARGV[2]), tonumber(ARGV[3])
  local late, NOTHING = BASE .. ':late', pack('<I4', OLD.gone) .. OLD.forgotten .. rep('\0', OLD.size - 10)
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

  -- The versions of a list that are not forgotten. Those that are mostly lie side by side.
  local function living(bytes)
    local parts, at, many = {}, 1, rep(NOTHING, 64)
    while at < #bytes do
      if u4(bytes, at) ~= OLD.gone then
        local from = at
        while at < #bytes and u4(bytes, at) ~= OLD.gone do at = at + OLD.size end
        parts[#parts + 1] = sub(bytes, from, at - 1)
      else
        at = at + (sub(bytes, at, at + #many - 1) == many and #many or OLD.size)
      end
    end
    return concat(parts)
  end

  -- Write a list anew. What stands beside one that grows short comes into it: nobody looks there any more. (Of a list in order
  -- all that is later than they is left; not of one that an earlier version of clusterd wrote, where late ones are last.)
  local function keep(u, key, left, length)
    if length > OLD.moved and #left <= OLD.moved then
      left = left .. OLD.beside(u)
      call('DEL', BASE .. ':ol:' .. u)
    end
    if left == '' then
      call('DEL', key)
      call('SETBIT', BASE .. ':x', whole(u), '0')
    else
      call('SET', key, left)
    end
  end

  -- Of those beside the list the earliest are looked at, and no other.
  local function release_late(u)
    local key = BASE .. ':ol:' .. u
    local late = call('ZRANGEBYLEX', key, '-', '(' .. ARGV[1], 'LIMIT', '0', looks)
    for _, member in ipairs(late) do release(u4(member, OLD.behind)) end
    if #late > 0 then call('ZREMRANGEBYRANK', key, '0', #late - 1) end
    gone, looks = gone + #late, looks - #late
  end

  -- Look at the next versions of a URL; returns the offset of the next, nil where there is none. What is forgotten is
  -- overwritten, and taken out at the end of the list: else a long one would be written anew by each of the calls that go
  -- through it. An offset is one more than a multiple where such lie before it.
  local function look(u)
    local key, parts, changed, some = BASE .. ':o:' .. u, {}, false, offset % OLD.size
    local from = offset - some
    local bytes = call('GETRANGE', key, from, from + looks * OLD.size - 1)
    for place = 1, #bytes, OLD.size do
      local node = u4(bytes, place)
      local goes = node ~= OLD.gone and precedes(sub(bytes, place + 4, place + 9), ARGV[1])
      if goes then
        release(node)
        gone, changed = gone + 1, true
      end
      if goes or node == OLD.gone then some = 1 end
      parts[#parts + 1] = goes and NOTHING or sub(bytes, place, place + OLD.size - 1)
    end
    looks = looks - #bytes / OLD.size
    if looks > 0 and from + #bytes > OLD.moved then release_late(u) end
    if looks > 0 then
      local before = some == 1 and from > 0 and call('GETRANGE', key, 0, from - 1) or ''
      if some == 1 then keep(u, key, living(before .. concat(parts)), from + #bytes) end
      return nil
    end
    if changed then call('SETRANGE', key, from, concat(parts)) end
    return from + #bytes + some
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
