-- versions(BASE; by, keys) → for each URL two strings: the URL ('' where it is unknown), its packed versions, current last
--
-- KEYS[1] BASE   the home shard (records.lua)
-- ARGV    by: 'id' (4 bytes each) or 'hash' (8 bytes each), or 'revised': 'id', of those alone that have shown several texts;
--         the keys, packed
-- a version, 49 bytes: content, fetch time (6, big-endian), text, bytes, words, crawl, sweep, status, shingles, tokens, profile
define('versions', function(ARGV)
  local reply = {}
  read_counters()
  open(URLS)

  local function text_of(n)
    return n[SHINGLES] == 0 and ZERO or n[TEXT]
  end

  local function add(out, node, at, content, bag, crawl, sweep, status)
    local n = get(NODES, node)
    out[#out + 1] = pack('<I4c6c8c8c8I3I3I2I3I3B', n[REP], at, text_of(n), content, bag, crawl,
      sweep, status, n[SHINGLES], n[TOKENS], n[PROFILE])
  end

  -- The superseded versions of a URL, one after the other; those that came very late are last.
  local function superseded(u)
    local old = call('GET', BASE .. ':o:' .. u) or ''
    return #old > OLD.moved and old .. OLD.beside(u) or old
  end

  -- Whether a page shows nothing but one text. Where its content had departed, a text has another node from then on.
  local function is_one(page, old)
    for place = 1, #old, OLD.size do
      local node = u4(old, place)
      if node ~= OLD.gone and node ~= page[NODE] and text_of(get(NODES, node)) ~= text_of(get(NODES, page[NODE])) then return false end
    end
    return true
  end

  local width, revised = ARGV[1] == 'hash' and 8 or 4, ARGV[1] == 'revised'
  for at = 1, #ARGV[2], width do
    local u = width == 4 and u4(ARGV[2], at) or page_by_hash(sub(ARGV[2], at, at + 7))
    local page, out = u and get(PAGES, u), {}
    if page and page[NODE] ~= 0 then
      local old = superseded(u)
      if not (revised and is_one(page, old)) then
        for place = 1, #old, OLD.size do
          if u4(old, place) ~= OLD.gone then add(out, unpack4(OLD.layout, old, place)) end
        end
        add(out, page[NODE], page[AT], page[CONTENT], page[BAG], page[CRAWL], page[SWEEP], page[STATUS])
        reply[#reply + 1] = url_of(u)
        reply[#reply + 1] = concat(out)
      end
    elseif not revised then
      reply[#reply + 1] = ''
      reply[#reply + 1] = ''
    end
  end
  return reply
end)
