-- register(BASE; policies, posted, URL hashes, sketch hashes, versions, places, URLs) → what became of each version
--
-- KEYS[1] BASE   the home shard (records.lua has its keys)
-- ARGV    policies that the caller knows (counters.lua); after a space each label that its versions carry:
--         number and length (4 bytes each), text
--         posted: contents that are pending no more (settling.lua), or nothing
--         the first four bytes of each version's URL hash, and of each sketch identity, one after the other
--         the versions, packed as below; where in the last argument the URL of each begins and ends, and where its host
--         does (4 bytes each, from 1); the URLs, one after the other
-- returns which policies there are, alone where these, or a label's number, is not the caller's, or another process of a
--         cluster's server answers (anew.lua; no version was looked at then); else how many ghosts wait to be dismissed;
--         for each version 16 bytes: URL id, node, content, flags (1 new, 2 current, 4 changed, 8 to be posted, 16 equal
--         in text, 32 equal in sketch, 64 its sketch is to be stored, not posted, 128 alone under every policy, 256 its
--         content was made by this very call, 512 it shows what it showed before); and for each that is current and not alone
--         a string: its places (forest.lua); if changed, those that it left; the URL of a page that is equal to it
--
-- 1. Find the URL. 2. Decide by (fetch time, text) whether this is its current version. 3. Find or make the text and the
-- content. 4. Let the URL leave what it showed and enter what it shows. A content that nothing shows any more waits to be
-- dismissed. What has to be posted is pending until `link`; a pending content is posted again by whoever meets it. One that
-- departs in the call that makes it is never posted: a URL that changes all the time costs no more than others.
--
-- A version is packed so that most of it goes into the records as it is (61 bytes, from 1):
--   1 URL hash, first half; 5 what PAGES keeps from the time on; 39 what NODES keeps from the sketch identity to the profile
-- Most pages are new, or show a content that is known: these two take short ways.

local VERSION = 61
-- Of these: the head of the URL hash; what PAGES keeps; what NODES keeps.
local PARTS = 'xc3c34c23'
-- Flags of what is new in URL and text.
local ALL_NEW = 1 + 2 + 8 + 128 + 256
local ALONE = pack('<I4I4I4I4', 1, 1, 1, 1) .. ZERO
local DETAILS = '<c6c4c8c8I3I3I2c8c8I3I3B'
-- Of one call: the versions; what is answered for each, and the content that is to be posted; contents that were made;
-- contents that may be pending, and the flag of a version that shows one that is; whether one that is to be posted may
-- have departed.
local versions, heads, tails, posts, to_post, doubts, doubted, doubtful

local function parse(i)
  local from = (i - 1) * VERSION
  local at, _, content, bag, crawl, sweep, status, sketch, text, shingles, _, profile = unpack4(DETAILS, versions, from + 5)
  return {
    node = sub(versions, from + 39, from + 61), at = at, content = content, bag = bag, crawl = crawl, sweep = sweep, status = status,
    sketch = sketch, text = text, profile = profile, order = at .. (shingles == 0 and ZERO or text), made = 0,
  }
end

-- Let a version have a flag if its content is pending: 8, to be posted, or 64, to be stored. All are asked for together.
local function post_if_pending(i, content, flag)
  if to_post[content] then
    heads[4 * i] = heads[4 * i] + flag
    if flag == 8 then posts[i] = content end
  else
    doubts[i], doubted[#doubted + 1] = flag, i
  end
end

local function new_text(v, content)
  local id, c = count(N, 1), edit(NODES, content)
  make(NODES, id, pack('<I4I4I4I4I4I4I4I4', content, 0, 0, 0, 0, 0, c[TNEXT], content) .. v.node .. '\0')
  put(TEXTS.used and TEXTS or open(TEXTS), sub(v.text, 1, 4), pack('<I4', id))
  if c[TNEXT] ~= 0 then edit(NODES, c[TNEXT])[TPREV] = id end
  c[TNEXT] = id
  return id
end

-- Before a content is made of a sketch that none shows which lives: those that departed, and their texts, are found no more.
-- Else a page that is this one day and that the next would leave one at each change, all to be passed by whoever comes.
local MOST_TEXTS = 64
local function outdate(sketch, profile)
  local hash, bytes, head = sub(sketch, 1, 4), bucket_of(SKETCHES, sketch), sub(sketch, 2, 4)
  local node, at = next_id(bytes, head, 1)
  while node do
    local n = get(NODES, node)
    if n[SKEY] == sketch and n[PROFILE] == profile then
      cut(SKETCHES, hash, pack('<I4', node))
      local text, steps = n[TNEXT], 0
      if text ~= 0 and not TEXTS.used then open(TEXTS) end
      while text ~= 0 and steps < MOST_TEXTS do
        cut(TEXTS, sub(get(NODES, text)[TEXT], 1, 4), pack('<I4', text))
        text, steps = get(NODES, text)[TNEXT], steps + 1
      end
    end
    node, at = next_id(bytes, head, at)
  end
end

-- A content that a URL has begun to show; without one, that of a version which was superseded before it came.
local function new_content(v, u)
  if u then outdate(v.sketch, v.profile) end
  local id = count(N, 1)
  local shown = u and pack('<I4', u) .. ALONE or pack('<I4I4I4I4I4I4I4', 0, 0, 1, 0, 1, 0, 0)
  make(NODES, id, pack('<I4', id) .. shown .. v.node .. pack('<B', u and 0 or DEPARTED + DISMISSED))
  put(SKETCHES, sub(v.sketch, 1, 4), pack('<I4', id))
  count(CONTENTS, 1)
  count(VERSIONS, 1)
  to_post[id], v.made = true, 256
  return id
end

-- Put a URL before those that show a node; returns the one that follows.
local function enter(u, node)
  local n = edit(NODES, node)
  local following = n[HEAD]
  if following ~= 0 then set_field(PAGES, following, PREV, u) end
  n[HEAD], n[LIVE] = u, n[LIVE] + 1
  recount(1, n[LIVE] - 1, n[LIVE])
  weigh(n[REP], 1)
  return following
end

-- Let a URL leave what it showed; `staying` is the content that it goes on to show.
local function depart(u, node, staying)
  local n, page = edit(NODES, node), edit(PAGES, u)
  if page[PREV] ~= 0 then set_field(PAGES, page[PREV], NEXT, page[NEXT]) else n[HEAD] = page[NEXT] end
  if page[NEXT] ~= 0 then set_field(PAGES, page[NEXT], PREV, page[PREV]) end
  n[LIVE] = n[LIVE] - 1
  recount(1, n[LIVE] + 1, n[LIVE])
  weigh(n[REP], -1)
  local c = edit(NODES, n[REP])
  if c[CLIVE] == 0 and n[REP] ~= staying then
    set(c, DEPARTED, true)
    doubtful = doubtful or to_post[n[REP]]
    call('RPUSH', BASE .. ':g', format('%.0f', n[REP] * 256 + (to_post[n[REP]] and 0 or c[PROFILE])))
  end
end

local function refer(node)
  local n = edit(NODES, node)
  local c = n[REP] == node and n or edit(NODES, n[REP])
  n[REFS], c[CREFS] = n[REFS] + 1, c[CREFS] + 1
  count(VERSIONS, 1)
end

local function supersede(u, record)
  call('APPEND', BASE .. ':o:' .. whole(u), record)
  call('SETBIT', BASE .. ':x', whole(u), '1')
end

local function answer(i, u, node, flags, now, before, twin)
  local at = 4 * i
  heads[at - 3], heads[at - 2], heads[at - 1], heads[at] = u, node, get(NODES, node)[REP], flags
  if flags % 4 >= 2 then tails[#tails + 1] = now .. before .. twin end
end

-- A delivery repeated: nothing changes; what a crash left pending is to be posted (a departed content: stored) again. One
-- that was sketched under another profile since is no sketch of that content.
local function again(i, u, node, current, profile)
  local content = get(NODES, node)[REP]
  answer(i, u, node, current and 2 or 0, current and places_of_page(node) or '', '', '')
  if get(NODES, content)[PROFILE] == profile then post_if_pending(i, content, 8) end
end

local keep_late
do
  -- The node of a superseded version that is known already, nil where it is not; then the place of the list that it is to
  -- have. Looked for by halves: what comes out of order reads no more of a long history than of a short one.
  local function known_old(key, length, v)
    local low, high = 0, length / OLD.size
    while low < high do
      local middle = floor((low + high) / 2)
      local node, at = unpack4('<I4c6', call('GETRANGE', key, whole(middle * OLD.size), whole(middle * OLD.size + 9)))
      local before = at == OLD.forgotten or precedes(at, v.at)
      if at == v.at then
        local mine = order(at, node)
        if mine == v.order then return node end
        before = precedes(mine, v.order)
      end
      if before then low = middle + 1 else high = middle end
    end
    return nil, low
  end

  -- The same of those that came so late that they have no place in the list.
  local function known_late(u, v)
    local found = call('ZRANGEBYLEX', BASE .. ':ol:' .. whole(u), '[' .. v.order, '+', 'LIMIT', '0', '1')[1]
    return found and sub(found, 1, OLD.behind - 1) == v.order and u4(found, OLD.behind) or nil
  end

  -- Keep a superseded version: in the list, where what follows moves on by a place, or beside it, where that is much.
  local function insert(u, key, behind, place, v, record)
    if behind > OLD.moved then return call('ZADD', BASE .. ':ol:' .. whole(u), '0', v.order .. record) end
    local from = whole(place * OLD.size)
    call('SETRANGE', key, from, behind == 0 and record or record .. call('GETRANGE', key, from, '-1'))
    call('SETBIT', BASE .. ':x', whole(u), '1')
  end

  function keep_late(i, u, v)
    local key = BASE .. ':o:' .. whole(u)
    local length = call('STRLEN', key)
    local known, place = known_old(key, length, v)
    known = known or length > OLD.moved and known_late(u, v)
    -- Fetched once more, unchanged, before it was delivered again: what came of it is told all the same.
    if known then return again(i, u, known, known == get(PAGES, u)[NODE], v.profile) end
    local content = find_content(v.sketch, v.profile, true)
    local node = content and (find_text(v.text, content) or new_text(v, content)) or new_content(v)
    if v.made == 0 then refer(node) end
    insert(u, key, length - place * OLD.size, place, v, pack(OLD.layout, node, v.at, v.content, v.bag, v.crawl, v.sweep, v.status))
    answer(i, u, node, 1 + v.made, '', '', '')
    -- One that lives may be on its way to be posted by somebody who dies: stored alone it would pass for posted.
    content = get(NODES, node)[REP]
    post_if_pending(i, content, has(get(NODES, content), DEPARTED) and 64 or 8)
  end
end

-- What is equal to a page that moves from one node (0: a new page) to another: flag, and the id of a page.
local function twin_of(u, old, node)
  local n = get(NODES, node)
  if old == node then
    local page = get(PAGES, u)
    local other = page[NEXT] ~= 0 and page[NEXT] or page[PREV]
    if other ~= 0 then return 16, other end
  elseif n[LIVE] > 0 then
    return 16, n[HEAD]
  elseif get(NODES, n[REP])[CLIVE] == 0 then
    return 0, 0
  end
  local other = shown_by(n[REP], u)
  return other ~= 0 and 32 or 0, other
end

-- A URL that was known shows another version now.
local function make_current(i, u, v)
  local page, content = edit(PAGES, u), find_content(v.sketch, v.profile, false)
  local old, node, equal, twin, before, following = page[NODE], nil, 0, 0, '', 0
  if content then
    node = find_text(v.text, content) or new_text(v, content)
    equal, twin = twin_of(u, old, node)
    refer(node)
  else
    node = new_content(v, u)
    content = node
  end
  supersede(u, pack(OLD.layout, old, page[AT], page[CONTENT], page[BAG], page[CRAWL], page[SWEEP], page[STATUS]))
  if old ~= node then
    before = places_of_page(old)
    depart(u, old, content)
    if v.made == 0 then following = enter(u, node) end
    page[NEXT], page[PREV] = following, 0
  end
  page[NODE], page[AT], page[CONTENT], page[BAG] = node, v.at, v.content, v.bag
  page[CRAWL], page[SWEEP], page[STATUS] = v.crawl, v.sweep, v.status
  local flags = 3 + equal + v.made + (before ~= '' and 4 or 0) + (old == node and 512 or 0)
  answer(i, u, node, flags, places_of_page(node), before, twin ~= 0 and one_url(twin) or '')
  post_if_pending(i, content, 8)
end

local function known_url(i, u)
  local page, v = get(PAGES, u), parse(i)
  local current = order(page[AT], page[NODE])
  if v.order == current then return again(i, u, page[NODE], true, v.profile) end
  if precedes(v.order, current) then return keep_late(i, u, v) end
  make_current(i, u, v)
end

-- A new URL that shows a content that others show. Most show its first text, too: nothing is looked up then.
local function one_more(i, u, content, shown)
  local from, n = (i - 1) * VERSION, edit(NODES, content)
  local text, node, equal, twin, live = sub(versions, from + 47, from + 54), content, 16, n[HEAD], n[LIVE]
  if n[TEXT] == text and live > 0 then
    set_field(PAGES, twin, PREV, u)
    n[HEAD], n[LIVE], n[REFS], n[CREFS] = u, live + 1, n[REFS] + 1, n[CREFS] + 1
    if live == 1 then count(CLUSTERS + 1, 1) end
    weigh(content, 1)
    count(VERSIONS, 1)
    make(PAGES, u, pack('<I4I4I4', content, twin, 0) .. shown)
  else
    node = find_text(text, content) or new_text(parse(i), content)
    equal, twin = twin_of(u, 0, node)
    refer(node)
    make(PAGES, u, pack('<I4I4I4', node, enter(u, node), 0) .. shown)
  end
  answer(i, u, node, 3 + equal, places_of_page(node), '', twin ~= 0 and one_url(twin) or '')
  post_if_pending(i, content, 8)
end

-- Ask which of the contents are pending that may be.
local function clear_doubts()
  local contents = {}
  for at, i in ipairs(doubted) do contents[at] = whole(heads[4 * i - 1]) end
  local pending = #doubted > 0 and call('SMISMEMBER', BASE .. ':w', unpack(contents)) or {}
  for at, i in ipairs(doubted) do
    if pending[at] == 1 then
      heads[4 * i], doubtful = heads[4 * i] + doubts[i], true
      if doubts[i] == 8 then posts[i] = heads[4 * i - 1] end
    end
  end
end

-- What is posted has been made before; what departed meanwhile, by a later version of the call, is only stored.
local function store_departed()
  for i, content in pairs(posts) do
    if has(get(NODES, content), DEPARTED) then heads[4 * i] = heads[4 * i] - 8 + 64 end
  end
end

local function write(hosts)
  finish()
  local made = {}
  for content in pairs(to_post) do made[#made + 1] = format('%d', content) end
  if #made > 0 then call('SADD', BASE .. ':w', unpack(made)) end
  for host, ids in pairs(hosts) do
    if call('APPEND', BASE .. ':h:' .. host, concat(ids)) == 4 * #ids then call('SADD', BASE .. ':hosts', host) end
  end
end

define('register', function(ARGV)
  -- Whether the caller knows the policies and labels: a store that was set back has lost the latest.
  local function knows(said)
    local at = find(said, ' ', 1, true) + 1
    if begin() ~= tonumber(sub(said, 1, at - 2)) or not is_known() then return false end
    while at < #said do
      local number, length = unpack4('<I4I4', said, at)
      if call('HGET', BASE .. ':l', sub(said, at + 8, at + 7 + length)) ~= whole(number) then return false end
      at = at + 8 + length
    end
    return true
  end

  if ARGV[2] ~= '' then unpend(ARGV[2]) end
  if not knows(ARGV[1]) then return {policies.number} end
  if spans.is_full() then return redis.error_reply('USEDUP ' .. (spans.first() and 'one of the homes of this store' or 'this store') ..
    ' has given all its numbers of contents: read the log into a store of another prefix') end
  open(SKETCHES)
  open(URLS)
  versions, tails, posts, to_post, doubts, doubted, doubtful = ARGV[5], {}, {}, {}, {}, {}, false
  local sketch_bucket, url_bucket = prefetch(SKETCHES, ARGV[4]), prefetch(URLS, ARGV[3])
  local sketch_cache, url_cache, sketch_dirty, url_dirty = SKETCHES.cache, URLS.cache, SKETCHES.dirty, URLS.dirty
  local hosts, new, new_pages, new_nodes = {}, 0, PAGES.made, NODES.made
  PAGES.used, NODES.used = true, true
  local number, places, urls, first = #versions / VERSION, ARGV[6], ARGV[7], counters[V] + 1
  local parts, ends = {unpack4(rep(PARTS, number), versions)}, {unpack4('<' .. rep('I4', 4 * number), places)}
  -- (What is answered for a version takes the place of where its URL was: a table of this size would cost as it grew.)
  heads, ends[4 * number + 1] = ends, nil
  for i = 1, number do
    local url_head, shown, text = parts[3 * i - 2], parts[3 * i - 1], parts[3 * i]
    local ub, sb, sketch_head, known = url_bucket[i], sketch_bucket[i], sub(text, 2, 4), nil
    if find(url_cache[ub], url_head, 1, true) then
      known = page_by_hash(sub(versions, (i - 1) * VERSION + 1, (i - 1) * VERSION + 4) .. sub(shown, 7, 10))
    end
    if known then
      known_url(i, known)
    else
      if find(sketch_cache[sb], sketch_head, 1, true) then
        known = find_content(sub(text, 1, 8), byte(text, 23), false)
        if not known then outdate(sub(text, 1, 8), byte(text, 23)) end
      end
      -- A URL that nobody has seen.
      local u, at = counters[V] + 1, 4 * i
      local uid, host = pack('<I4', u), sub(urls, ends[at - 1], ends[at])
      counters[V], new_urls[u] = u, sub(urls, ends[at - 3], ends[at - 2])
      local of = hosts[host]
      if of then of[#of + 1] = uid else hosts[host] = {uid} end
      url_cache[ub], url_dirty[ub] = url_cache[ub] .. url_head .. uid, true
      if known then
        one_more(i, u, known, shown)
      else
        local id = counters[N] + 1
        local node = pack('<I4', id)
        counters[N], new = id, new + 1
        new_nodes[id] = node .. uid .. ALONE .. text .. '\0'
        new_pages[u] = node .. ZERO .. shown
        sketch_cache[sb], sketch_dirty[sb] = sketch_cache[sb] .. sketch_head .. node, true
        to_post[id], posts[i] = true, id
        heads[at - 3], heads[at - 2], heads[at - 1], heads[at] = u, id, id, ALL_NEW
      end
    end
  end
  if counters[V] >= first then first_url, last_url = first, counters[V] end
  URLS.n, SKETCHES.n = URLS.n + counters[V] + 1 - first, SKETCHES.n + new
  count(VERSIONS, new)
  count(CONTENTS, new)
  clear_doubts()
  if doubtful then store_departed() end
  write(hosts)
  return {policies.number, call('LLEN', BASE .. ':g'), pack('<' .. rep('I4', #heads), unpack(heads)), unpack(tails)}
end)
