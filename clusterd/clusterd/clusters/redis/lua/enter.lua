-- enter(BASE; posted, pages) → what `posted` returns; for each page 5 bytes: its text; 1 where that is to be posted, 2 where
--         it is new besides
--
-- KEYS[1] BASE   the second stream (stream.lua)
-- ARGV    posted: texts that were posted since (posted.lua); pages, 19 bytes each: page, fetch time (6, big-endian),
--         identity (zeros: it shows no text), profile
--
-- A page that was fetched later than this is left alone, and shows what it shows. What no page shows any more at the end of
-- the call is not posted: it may be buried before that.

local function new_text(identity, profile)
  local text = tonumber(call('INCR', BASE .. ':c'))
  TEXTS.records[text], TEXTS.changed[text] = {0, 0, identity, profile, 0}, true
  put(place(identity), identity, pack('<I4', text))
  return text
end

local function leave(page)
  local p = edit(PAGES, page)
  if p[TEXT] == 0 then return end
  local t = edit(TEXTS, p[TEXT])
  if p[NEXT] == page then
    t[HEAD] = 0
    call('RPUSH', BASE .. ':g', string.format('%d', p[TEXT] * 256 + t[PROFILE]))
  else
    edit(PAGES, p[PREV])[NEXT] = p[NEXT]
    edit(PAGES, p[NEXT])[PREV] = p[PREV]
    if t[HEAD] == page then t[HEAD] = p[NEXT] end
  end
  t[LIVE], p[TEXT] = t[LIVE] - 1, 0
end

local function show(page, text)
  local p, t = edit(PAGES, page), edit(TEXTS, text)
  p[TEXT] = text
  if t[HEAD] == 0 then
    t[HEAD], p[NEXT], p[PREV] = page, page, page
  else
    local head = edit(PAGES, t[HEAD])
    p[NEXT], p[PREV] = head[NEXT], t[HEAD]
    edit(PAGES, head[NEXT])[PREV] = page
    head[NEXT] = page
  end
  t[LIVE] = t[LIVE] + 1
end

local function enter(page, at, identity, profile)
  local p = get(PAGES, page)
  if precedes(at, p[AT]) then return p[TEXT], 0 end
  local text, made
  if identity ~= '\0\0\0\0\0\0\0\0' then
    text = text_of(identity, profile)
    made = not text
    text = text or new_text(identity, profile)
  end
  if p[TEXT] ~= (text or 0) then
    leave(page)
    if text then show(page, text) end
  end
  if p[AT] ~= at then edit(PAGES, page)[AT] = at end
  if not text then return 0, 0 end
  return text, made and 2 or 1 - get(TEXTS, text)[POSTED]
end

define('enter', function(ARGV)
  open()
  local buried = note_posted(ARGV[1])
  local numbers, texts, states, reply = {}, {}, {}, {}
  for at = 1, #ARGV[2], 19 do numbers[#numbers + 1] = place(sub(ARGV[2], at + 10, at + 13)) end
  read(numbers)
  for at = 1, #ARGV[2], 19 do
    local page, time, identity, profile = unpack4('<I4c6c8B', ARGV[2], at)
    local n = #texts + 1
    texts[n], states[n] = enter(page, time, identity, profile)
  end
  for n, text in ipairs(texts) do
    reply[n] = pack('<I4B', text, get(TEXTS, text)[LIVE] > 0 and states[n] or 0)
  end
  flush()
  if entries > (buckets + 4) * LOAD then fit() end
  write()
  return {buried, table.concat(reply)}
end)
