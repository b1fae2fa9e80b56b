-- link(BASE; policies, partitions, (partition, known, offset)*, posted, (page, edges)*) → for each page: where it stands
--
-- KEYS[1] BASE   the home shard (records.lua has its keys)
-- ARGV    policies (counters.lua) by which the edges were judged; partitions: how many follow (positions.lua)
--         posted: contents that are pending no more (settling.lua)
--         for each page that was proposed any: packed URL id, node, content, what matches (contents, the best first);
--         its verified edges, 6 bytes each: content, bits of the policies that join the two
-- returns -1 where the store is in another state than when they were posted (pending.py): their numbers may be others' by
--         now; which policies there are, alone where these are not the caller's (nothing was done then); -2 where all was
--         done, but the position is not what the caller knew, which was not moved then; else for each page
--         three strings: its best match that another page shows (a content, 4 bytes; its own where one shows that by
--         now) and the URL of such a page, empty where there is none (most often, what a page resembles most is what it
--         showed before); its places (forest.lua), empty where it shows another text by now; for each graded policy a
--         byte: 1 where this page made one of two clusters of several pages, 2 where it brought others together of
--         which but one or none was in company before, else 0; besides 4 × the clusters that were joined (2 at most),
--         and 16 × those that had several pages before (2 at most).
--         At last, where any were joined that are parts of spans: which of these are to be one, in pairs of 4 bytes each
--
-- 1. Link all pages, so that a page sees its whole batch. 2. Say where each stands. 3. Remember how far the log was read.
define('link', function(ARGV)
  local first = 4 + 3 * tonumber(ARGV[2])
  local posted = ARGV[first - 1]
  if not is_as(posted) then return {-1} end
  if begin() ~= tonumber(ARGV[1]) then return {policies.number} end

  local met = {}

  local function brought(by, p)
    local joined, of_several = unpack(by[p] or {0, 0})
    local did = of_several > 1 and 1 or joined > 1 and 2 or 0
    return string.char(did + 4 * math.min(joined, 2) + 16 * math.min(of_several, 2))
  end

  for i = first, #ARGV, 2 do
    local _, _, content = unpack4('<I4I4I4', ARGV[i])
    met[i] = {}
    if ARGV[i + 1] ~= '' then
      local n = get(NODES, content)
      if n[REP] == content and not has(n, DEPARTED) then link(content, ARGV[i + 1], met[i]) end
    end
  end

  -- What came to show the very same meanwhile, as later in the batch, is more alike than any other.
  local function matched(u, page)
    for at = 9, #page, 4 do
      local other = shown_by(u4(page, at), u)
      if other ~= 0 then return sub(page, at, at + 3) .. one_url(other) end
    end
    return ''
  end

  local reply = {policies.number}
  for i = first, #ARGV, 2 do
    local u, node = unpack4('<I4I4', ARGV[i])
    local together = {}
    for p = 0, graded - 1 do together[p + 1] = brought(met[i], p) end
    reply[#reply + 1] = matched(u, ARGV[i])
    reply[#reply + 1] = get_field(PAGES, u, NODE) == node and places_of_page(node) or ''
    reply[#reply + 1] = concat(together)
  end
  finish()
  unpend(posted)
  if not move_on(ARGV, 3, first - 2) then return {-2} end
  reply[#reply + 1] = spans.unions
  return reply
end)
