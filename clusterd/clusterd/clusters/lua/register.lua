-- register(BASE; policies, (version, url, host)*) → for each version: what became of it
--
-- KEYS[1] BASE   the home shard (records.lua has its keys)
-- ARGV    policies: number of graded policies that the caller knows
--         for each version: packed VERSION; its URL; its host
-- returns number of graded policies; then for each version, packed: URL id, node, content, twin (a URL id equal to it, or
--         0), flags (1 new, 2 current, 4 changed, 8 to be posted, 16 equal in text, 32 equal in sketch,
--         64 its sketch is to be stored, not posted); after that,
--         where it changed: size and name of the cluster that it left, under identical text and each graded policy
--
-- 1. Find the URL. 2. Decide by (fetch time, text) whether this is its current version. 3. Find or make the text and the
-- content. 4. Let the URL leave what it showed and enter what it shows. A content that nothing shows any more waits to be
-- dismissed. What has to be posted is pending until `link`; a pending content is posted again by whoever meets it.

local VERSION = '<c8c8c8c8c8c8I4I4I4I4I4B'
local known_policies = tonumber(call('HGET', BASE .. ':m', 'graded') or 0)
policies(known_policies)
local TEXTS, SKETCHES, URLS = open('t'), open('c'), open('u')
local versions = 0

local function find_text(v)
  for _, id in ipairs((under(TEXTS, string.sub(v.text, 1, 4)))) do
    local number = u4(id, 1)
    local n = get(NODES, number)
    if n[TEXT] == v.text and n[PROFILE] == v.profile and (v.late or not has(get(NODES, n[REP]), DEPARTED)) then
      return number
    end
  end
end

local function find_content(v)
  for _, id in ipairs((under(SKETCHES, string.sub(v.sketch, 1, 4)))) do
    local number = u4(id, 1)
    local n = get(NODES, number)
    if n[SKEY] == v.sketch and n[PROFILE] == v.profile and (v.late or not has(n, DEPARTED)) then return number end
  end
end

local function enlist(t, hash, id)
  local _, key, bytes = under(t, hash)
  put(t, key, bytes, hash, pack('<I4', id))
end

local function new_node(v, content)
  local id = call('HINCRBY', BASE .. ':m', 'n', 1)
  local n = edit(NODES, id)
  for field = REP, FLAGS do n[field] = 0 end
  n[REP], n[TEXT], n[SKEY], n[SHINGLES], n[TOKENS], n[PROFILE] = content or id, v.text, ZERO, v.shingles, v.tokens, v.profile
  enlist(TEXTS, string.sub(v.text, 1, 4), id)
  if content then
    local c = edit(NODES, content)
    n[TPREV], n[TNEXT] = content, c[TNEXT]
    if c[TNEXT] ~= 0 then edit(NODES, c[TNEXT])[TPREV] = id end
    c[TNEXT] = id
  else
    n[SKEY] = v.sketch
    n[FLAGS] = PENDING + (v.late and DEPARTED + DISMISSED or 0)
    enlist(SKETCHES, string.sub(v.sketch, 1, 4), id)
    call('HINCRBY', BASE .. ':m', 'contents', 1)
  end
  return id
end

local function node_of(v)
  local id = find_text(v)
  if id then return id end
  return new_node(v, find_content(v))
end

local function enter(u, node)
  local n, page = edit(NODES, node), edit(PAGES, u)
  if n[HEAD] == 0 then
    n[HEAD], page[NEXT], page[PREV] = u, u, u
  else
    local head = edit(PAGES, n[HEAD])
    page[NEXT], page[PREV] = head[NEXT], n[HEAD]
    edit(PAGES, head[NEXT])[PREV] = u
    head[NEXT] = u
  end
  n[LIVE] = n[LIVE] + 1
  local c = edit(NODES, n[REP])
  c[CLIVE] = c[CLIVE] + 1
  for p = 0, known_policies - 1 do resize(p, n[REP], 1) end
end

-- Let a URL leave what it showed; `staying` is the content that it goes on to show.
local function depart(u, node, staying)
  local n, page = edit(NODES, node), edit(PAGES, u)
  if page[NEXT] == u then
    n[HEAD] = 0
  else
    edit(PAGES, page[PREV])[NEXT] = page[NEXT]
    edit(PAGES, page[NEXT])[PREV] = page[PREV]
    if n[HEAD] == u then n[HEAD] = page[NEXT] end
  end
  n[LIVE] = n[LIVE] - 1
  for p = 0, known_policies - 1 do resize(p, n[REP], -1) end
  local c = edit(NODES, n[REP])
  c[CLIVE] = c[CLIVE] - 1
  if c[CLIVE] == 0 and n[REP] ~= staying then
    set(c, DEPARTED, true)
    call('RPUSH', BASE .. ':g', n[REP] * 256 + c[PROFILE])
  end
end

local function refer(node)
  local n = edit(NODES, node)
  n[REFS] = n[REFS] + 1
  local c = edit(NODES, n[REP])
  c[CREFS] = c[CREFS] + 1
  versions = versions + 1
end

local function supersede(u, record)
  call('APPEND', BASE .. ':o:' .. u, record)
  call('SADD', BASE .. ':x', u)
end

-- The node of a superseded version that is known already, nil where it is not.
local function known_old(u, v)
  local bytes = call('GET', BASE .. ':o:' .. u) or ''
  local at = string.find(bytes, v.at, 1, true)
  while at do
    if at % OLD_SIZE == 5 then
      local node = u4(bytes, at - 4)
      if order(v.at, node) == v.order then return node end
    end
    at = string.find(bytes, v.at, at + 1, true)
  end
end

local function new_page(v, url, host)
  local u = call('HINCRBY', BASE .. ':m', 'v', 1)
  local page = edit(PAGES, u)
  for field = NODE, STATUS do page[field] = 0 end
  page[AT], page[UHASH], page[CONTENT], page[BAG] = ZERO, v.url, ZERO, ZERO
  enlist(URLS, string.sub(v.url, 1, 4), u)
  call('HSET', BASE .. ':s:' .. floor(u / 16), u % 16, url)
  call('APPEND', BASE .. ':h:' .. host, pack('<I4', u))
  call('HINCRBY', BASE .. ':hosts', host, 1)
  return u
end

local function stand(node)
  local n = get(NODES, node)
  local bytes = pack('<I4I4', n[LIVE], node)
  for p = 0, known_policies - 1 do
    local size, name = standing(p, n[REP])
    bytes = bytes .. pack('<I4I4', size, name)
  end
  return bytes
end

local function answer(u, node, twin, flags, before)
  return pack('<I4I4I4I4I4', u, node, get(NODES, node)[REP], twin, flags) .. (before or '')
end

-- A delivery repeated: nothing changes; what a crash left pending is to be posted (a departed content: stored) again.
local function again(u, node, current)
  local c = get(NODES, get(NODES, node)[REP])
  local flags = current and 2 or 0
  if has(c, PENDING) then flags = flags + (has(c, DEPARTED) and 64 or 8) end
  return answer(u, node, 0, flags)
end

local function keep_late(u, v)
  local known = known_old(u, v)
  if known then return again(u, known, false) end
  v.late = true
  local node = node_of(v)
  refer(node)
  supersede(u, pack(OLD, node, v.at, v.content, v.bag, v.crawl, v.sweep, v.status))
  return answer(u, node, 0, 1 + (has(get(NODES, get(NODES, node)[REP]), PENDING) and 64 or 0))
end

local function make_current(u, v)
  local page = edit(PAGES, u)
  local old = page[NODE]
  local node = node_of(v)
  local n = get(NODES, node)
  local c = get(NODES, n[REP])
  local flags, twin, before = 3, 0, nil
  if old ~= node then
    if n[LIVE] > 0 then flags, twin = flags + 16, n[HEAD]
    elseif c[CLIVE] > 0 then
      twin = shown_by(n[REP], u)
      if twin ~= 0 then flags = flags + 32 end
    end
  elseif n[LIVE] > 1 then
    flags, twin = flags + 16, page[NEXT]
  end
  if old ~= 0 then
    supersede(u, pack(OLD, old, page[AT], page[CONTENT], page[BAG], page[CRAWL], page[SWEEP], page[STATUS]))
    if old ~= node then flags, before = flags + 4, stand(old) end
  end
  refer(node)
  if old ~= node then
    if old ~= 0 then depart(u, old, n[REP]) end
    enter(u, node)
  end
  page[NODE], page[AT], page[CONTENT], page[BAG] = node, v.at, v.content, v.bag
  page[CRAWL], page[SWEEP], page[STATUS] = v.crawl, v.sweep, v.status
  if has(get(NODES, n[REP]), PENDING) then flags = flags + 8 end
  return answer(u, node, twin, flags, before)
end

local reply = {known_policies}
if tonumber(ARGV[1]) ~= known_policies then return reply end
for i = 2, #ARGV, 3 do
  local v = {}
  v.text, v.sketch, v.url, v.content, v.bag, v.at, v.shingles, v.tokens, v.crawl, v.sweep, v.status, v.profile =
    unpack4(VERSION, ARGV[i])
  v.order = v.at .. (v.shingles == 0 and ZERO or v.text)
  local u = page_by_hash(URLS, v.url) or new_page(v, ARGV[i + 1], ARGV[i + 2])
  local page = get(PAGES, u)
  local current = page[NODE] ~= 0 and order(page[AT], page[NODE]) or ''
  if v.order == current then
    reply[#reply + 1] = again(u, page[NODE], true)
  elseif v.order < current then
    reply[#reply + 1] = keep_late(u, v)
  else
    reply[#reply + 1] = make_current(u, v)
  end
end
flush()
close(TEXTS)
close(SKETCHES)
close(URLS)
if versions > 0 then call('HINCRBY', BASE .. ':m', 'versions', versions) end
return reply
