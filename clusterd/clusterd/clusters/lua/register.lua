-- register(BASE; policies, (version, url, host)*) → for each version: what became of it
--
-- KEYS[1] BASE   the home shard (records.lua has its keys)
-- ARGV    policies: number of graded policies that the caller knows
--         for each version: packed VERSION; its URL; its host
-- returns number of graded policies, alone where it is not the caller's (nothing was done then); else for each version,
--         packed: URL id, node, content, flags (1 new, 2 current, 4 changed, 8 to be posted, 16 equal in text, 32 equal in
--         sketch, 64 its sketch is to be stored, not posted, 128 alone under every policy: no places follow, 256 its
--         content was made by this very call); if current, its places (forest.lua); if changed, those that it
--         left; the URL of a page that is equal to it
--
-- 1. Find the URL. 2. Decide by (fetch time, text) whether this is its current version. 3. Find or make the text and the
-- content. 4. Let the URL leave what it showed and enter what it shows. A content that nothing shows any more waits to be
-- dismissed. What has to be posted is pending until `link`; a pending content is posted again by whoever meets it.

local VERSION = '<c8c8c8c8c8c6I3I3I3I3I2B'
-- Of one call.
local known_policies, TEXTS, SKETCHES, URLS, versions, contents, hosts, pending, to_post

-- The content of a sketch, nil where it is not known; one that departed serves late versions only.
local function find_content(v)
  for _, id in ipairs(under(SKETCHES, sub(v.sketch, 1, 4))) do
    local node = u4(id, 1)
    local n = get(NODES, node)
    if n[SKEY] == v.sketch and n[PROFILE] == v.profile and (v.late or not has(n, DEPARTED)) then return node end
  end
end

-- The node of a text of a content: its own, or another (only those are in the table of texts).
local function find_text(v, content)
  if get(NODES, content)[TEXT] == v.text then return content end
  for _, id in ipairs(under(TEXTS, sub(v.text, 1, 4))) do
    local n = get(NODES, u4(id, 1))
    if n[TEXT] == v.text and n[REP] == content then return u4(id, 1) end
  end
end

local function new_text(v, content)
  local id, c = next_id('n'), edit(NODES, content)
  fresh(NODES, id, {content, 0, 0, 0, c[TNEXT], content, v.text, v.shingles, v.tokens, 0, 0, ZERO, v.profile, 0})
  put(TEXTS, sub(v.text, 1, 4), pack('<I4', id))
  if c[TNEXT] ~= 0 then edit(NODES, c[TNEXT])[TPREV] = id end
  c[TNEXT] = id
  return id
end

-- A content shown by so many URLs (0 or 1) so far, the first of them `head`.
local function new_content(v, live, head)
  local id = next_id('n')
  local flags = v.late and DEPARTED + DISMISSED or 0
  fresh(NODES, id, {id, live, live, head, 0, 0, v.text, v.shingles, v.tokens, live, live, v.sketch, v.profile, flags})
  v.made = true
  put(SKETCHES, sub(v.sketch, 1, 4), pack('<I4', id))
  contents = contents + 1
  pending[id], to_post[#to_post + 1] = true, id
  return id
end

local function node_of(v)
  local content = find_content(v)
  if not content then return new_content(v, 0, 0) end
  return find_text(v, content) or new_text(v, content)
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
  if has(c, JOINED) then
    for p = 0, known_policies - 1 do resize(p, n[REP], 1) end
  end
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
  local c = edit(NODES, n[REP])
  if has(c, JOINED) then
    for p = 0, known_policies - 1 do resize(p, n[REP], -1) end
  end
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
  local at = find(bytes, v.at, 1, true)
  while at do
    if at % OLD_SIZE == 5 then
      local node = u4(bytes, at - 4)
      if order(v.at, node) == v.order then return node end
    end
    at = find(bytes, v.at, at + 1, true)
  end
end

-- A URL that shows nothing yet.
local function new_page(v, url, host)
  local u = next_id('v')
  fresh(PAGES, u, {0, u, u, v.at, sub(v.url, 5, 8), v.content, v.bag, v.crawl, v.sweep, v.status})
  put(URLS, sub(v.url, 1, 4), pack('<I4', u))
  keep_value(strings, u, url)
  hosts[host] = (hosts[host] or '') .. pack('<I4', u)
  return u
end

-- A URL and a content that nobody has seen, as of most pages: what `make_current` would come to.
local function first_of_both(v, url, host)
  local u = new_page(v, url, host)
  local id = new_content(v, 1, u)
  get(PAGES, u)[NODE] = id
  versions = versions + 1
  return pack('<I4I4I4I4', u, id, id, 1 + 2 + 8 + 128 + 256)
end

local function answer(u, node, flags, now, before, twin)
  return pack('<I4I4I4I4', u, node, get(NODES, node)[REP], flags) .. now .. before .. twin
end

-- A delivery repeated: nothing changes; what a crash left pending is to be posted (a departed content: stored) again.
local function again(u, node, current)
  local content = get(NODES, node)[REP]
  local flags = current and 2 or 0
  if pending[content] then flags = flags + (has(get(NODES, content), DEPARTED) and 64 or 8) end
  return answer(u, node, flags, current and places(node) or '', '', '')
end

local function keep_late(u, v)
  local known = known_old(u, v)
  if known then return again(u, known, false) end
  v.late = true
  local node = node_of(v)
  refer(node)
  supersede(u, pack(OLD, node, v.at, v.content, v.bag, v.crawl, v.sweep, v.status))
  return answer(u, node, 1 + (pending[get(NODES, node)[REP]] and 64 or 0), '', '', '')
end

-- What is equal to a page that moves from one node (0: a new page) to another: flag, and the id of a page.
local function twin_of(u, old, node)
  local n = get(NODES, node)
  if old == node then
    local other = get(PAGES, u)[NEXT]
    if other ~= u then return 16, other end
    return 0, 0
  end
  if n[LIVE] > 0 then return 16, n[HEAD] end
  if get(NODES, n[REP])[CLIVE] == 0 then return 0, 0 end
  local other = shown_by(n[REP], u)
  return other ~= 0 and 32 or 0, other
end

local function make_current(u, v)
  local page = edit(PAGES, u)
  local old = page[NODE]
  local node = node_of(v)
  local content = get(NODES, node)[REP]
  local equal, twin = twin_of(u, old, node)
  local flags, before = 3 + equal + (v.made and 256 or 0), ''
  if old ~= 0 then
    supersede(u, pack(OLD, old, page[AT], page[CONTENT], page[BAG], page[CRAWL], page[SWEEP], page[STATUS]))
    if old ~= node then flags, before = flags + 4, places(old) end
  end
  refer(node)
  if old ~= node then
    if old ~= 0 then depart(u, old, content) end
    enter(u, node)
  end
  page[NODE], page[AT], page[CONTENT], page[BAG] = node, v.at, v.content, v.bag
  page[CRAWL], page[SWEEP], page[STATUS] = v.crawl, v.sweep, v.status
  if pending[content] then flags = flags + 8 end
  return answer(u, node, flags, places(node), before, twin ~= 0 and url_of(twin) or '')
end

-- The versions of a call; their buckets are read ahead.
local function parse(ARGV)
  local parsed, hashes, count = {}, {{}, {}}, 0
  for i = 2, #ARGV, 3 do
    local text, sketch, url, content, bag, at, shingles, tokens, crawl, sweep, status, profile = unpack4(VERSION, ARGV[i])
    count = count + 1
    parsed[count] = {
      text = text, sketch = sketch, url = url, content = content, bag = bag, at = at, shingles = shingles, tokens = tokens,
      crawl = crawl, sweep = sweep, status = status, profile = profile, order = at .. (shingles == 0 and ZERO or text),
      late = false,
    }
    hashes[1][count], hashes[2][count] = sub(sketch, 1, 4), sub(url, 1, 4)
  end
  prefetch(SKETCHES, table.concat(hashes[1]))
  prefetch(URLS, table.concat(hashes[2]))
  return parsed, count
end

local function known_url(u, v)
  local page = get(PAGES, u)
  local current = page[NODE] ~= 0 and order(page[AT], page[NODE]) or ''
  if v.order == current then return again(u, page[NODE], true) end
  if v.order < current then return keep_late(u, v) end
  return make_current(u, v)
end

local function write()
  flush()
  close(TEXTS)
  close(SKETCHES)
  close(URLS)
  write_values(strings)
  if #to_post > 0 then call('SADD', BASE .. ':w', unpack(to_post)) end
  for host, ids in pairs(hosts) do
    call('APPEND', BASE .. ':h:' .. host, ids)
    call('HINCRBY', BASE .. ':hosts', host, #ids / 4)
  end
  if versions > 0 then call('HINCRBY', BASE .. ':m', 'versions', versions) end
  if contents > 0 then call('HINCRBY', BASE .. ':m', 'contents', contents) end
end

define('register', function(ARGV)
  known_policies = tonumber(call('HGET', BASE .. ':m', 'graded') or 0)
  if tonumber(ARGV[1]) ~= known_policies then return {known_policies} end
  policies(known_policies)
  TEXTS, SKETCHES, URLS = open('t'), open('c'), open('u')
  versions, contents, hosts = 0, 0, {}
  pending, to_post = {}, {}
  for _, id in ipairs(call('SMEMBERS', BASE .. ':w')) do pending[tonumber(id)] = true end
  local parsed, count = parse(ARGV)
  local reply = {known_policies}
  for i = 1, count do
    local v, url, host = parsed[i], ARGV[3 * i], ARGV[3 * i + 1]
    local u = page_by_hash(URLS, v.url)
    if u then
      reply[i + 1] = known_url(u, v)
    elseif find_content(v) then
      reply[i + 1] = make_current(new_page(v, url, host), v)
    else
      reply[i + 1] = first_of_both(v, url, host)
    end
  end

  write()
  return reply
end)
