-- link(BASE; policies, partitions, (partition, offset)*, (page, edges)*) → for each page: where it stands now
--
-- KEYS[1] BASE   the home shard (records.lua has its keys)
-- ARGV    policies: number of graded policies by which the edges were judged; partitions: how many positions follow
--         for each page: packed URL id, node, content, match (a URL id, or a content), flags (1 posted, 2 the match is a content)
--         its verified edges, 6 bytes each: content, bits of the policies that join the two
-- returns number of graded policies, alone where it is not the caller's (nothing was done then); else for each page two
--         strings: the URL of its match; size, name, and whether two clusters became one (9 bytes), under identical text
--         and under each graded policy; empty where the page shows another text by now
--
-- 1. Link all pages, so that a page sees its whole batch. 2. Say where each stands. 3. Remember how far the log was read.
-- An edge to a content that departed in the meantime is dropped: it never comes back.

local known_policies = tonumber(call('HGET', BASE .. ':m', 'graded') or 0)
if tonumber(ARGV[1]) ~= known_policies then return {known_policies} end
policies(known_policies)
local first = 3 + 2 * tonumber(ARGV[2])

local merged = {}
for i = first, #ARGV, 2 do
  local _, _, content, _, flags = unpack4('<I4I4I4I4I4', ARGV[i])
  merged[i] = {}
  if flags % 2 == 1 then
    if not has(get(NODES, content), DEPARTED) then link(content, ARGV[i + 1], merged[i]) end
    set(edit(NODES, content), PENDING, false)
  end
end

local reply = {known_policies}
for i = first, #ARGV, 2 do
  local u, node, _, match, flags = unpack4('<I4I4I4I4I4', ARGV[i])
  local n = get(NODES, node)
  if floor(flags / 2) % 2 == 1 then match = shown_by(match, u) end
  reply[#reply + 1] = match ~= 0 and url_of(match) or ''
  local where = {}
  if get(PAGES, u)[NODE] == node then
    where[1] = pack('<I4I4B', n[LIVE], node, 0)
    for p = 0, known_policies - 1 do
      local size, name = standing(p, n[REP])
      where[#where + 1] = pack('<I4I4B', size, name, merged[i][p] and 1 or 0)
    end
  end
  reply[#reply + 1] = table.concat(where)
end
flush()
for i = 3, first - 1, 2 do call('HSET', BASE .. ':q', ARGV[i], ARGV[i + 1]) end
return reply
