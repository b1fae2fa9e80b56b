-- policies(BASE; before, changes, policy*) → 1; 0 where the policies are not those of `before`: nothing is done then
--
-- KEYS[1] BASE   the home shard;  BASE:policies list of policies, as JSON;  BASE:i counters;  BASE:clear, mv, rl (settling.lua)
-- ARGV    before: the number of the policies (counters.lua) and each of them, in lines; changes: how often a place was vacated
--         or taken again; the policies from now on. One that is decided by a verdict has a place for good, of 16 (an edge has
--         as many bits): one that is removed leaves it vacant, without a name, to one that is added later
--
-- Where a place has another policy, what contents hold of the one before is to be cleared, nodes BASE:clear. For one that is
-- new all contents are to be looked up again, nodes BUILD to BUILD_TO; no longer where all are gone again that it was
-- begun for (BASE:for). Each is a cluster of its own first.
define('policies', function(ARGV)
  -- Of a build that is also for contents as they are (rebuild.lua): some of these 16 places are never vacant.
  local ANYBODY = 65535
  local EMPTY = '{"name": "", "resemblance": null, "containment": null}'
  local before, after = call('LRANGE', BASE .. ':policies', 0, -1), {unpack(ARGV, 3)}
  begin()
  if concat({whole(policies.number), unpack(before)}, '\n') ~= ARGV[1] then return 0 end

  local function graded_of(texts)
    local found = {}
    for _, text in ipairs(texts) do
      local one = cjson.decode(text)
      if one.name == '' or one.resemblance ~= cjson.null or one.containment ~= cjson.null then
        found[#found + 1] = {text = text, vacant = one.name == ''}
      end
    end
    return found
  end

  local had, now, is_left, new, bits = graded_of(before), graded_of(after), false, 0, 0
  for _ = #now + 1, #had do
    after[#after + 1], now[#now + 1] = EMPTY, {text = EMPTY, vacant = true}
  end
  for slot, one in ipairs(now) do
    local old = had[slot]
    if not old then counters[CLUSTERS + 2 + slot] = counters[CLUSTERS + 2] end
    if not old or old.text ~= one.text then
      is_left = is_left or old and not old.vacant
      if not one.vacant then new = new + 2 ^ (slot - 1) end
    end
    if one.vacant then bits = bits + 2 ^ (slot - 1) end
  end
  counters[GRADED], counted = #now + 32 * tonumber(ARGV[2]) + 65536 * bits, true
  local first = (spans.first() or 0) + 1
  local goes_on = counters[BUILD] > 0 and counters[BUILD] <= counters[BUILD_TO]
  local whom = goes_on and tonumber(call('GET', BASE .. ':for') or ANYBODY) or 0
  whom = bit.band(bit.bor(whom, new), bit.bnot(bits))
  if new > 0 then counters[BUILD], counters[BUILD_TO] = first, counters[N] end
  if whom == 0 then counters[BUILD_TO] = 0 end
  call('SET', BASE .. ':for', whole(whom))
  if is_left then
    call('SET', BASE .. ':clear', pack('<I4I4', first, counters[N]))
    -- (What moves under a policy would be one cluster under the next.)
    for _, moves in ipairs({BASE .. ':mv', BASE .. ':rl'}) do
      local part = call('GET', moves)
      if part and now[byte(part) + 1].vacant then call('DEL', moves) end
    end
  end
  write_counters()
  call('DEL', BASE .. ':policies')
  if #after > 0 then call('RPUSH', BASE .. ':policies', unpack(after)) end
  return 1
end)
