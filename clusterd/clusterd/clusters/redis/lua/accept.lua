-- accept(BASE; policies, pairs) → which policies there are; where it is the caller's: for each pair a byte: 0 where the
--         content is shown no more, 1, or 2 where its sketch is the other's, too; size and name of its cluster (4 bytes each,
--         forest.lua) under each policy of each pair that it took up; for each that was asked for one the URL of a page that
--         shows it ('' where none does)
--
-- KEYS[1] BASE   the home shard (records.lua, forest.lua, spans.lua)
-- ARGV    policies (counters.lua) by which the pairs were judged, '' where that does not matter: an edge is told
--         that is known elsewhere
--         pairs, 20 bytes each: a content of this home, one of another, bits of the policies that join the two (none: it is
--         only asked for), 1 where a URL is asked for, sketch identity and profile of the other
--
-- The first of the two ends of a pair that hears of it: what departed takes up no edge, and the other end is not told.
define('accept', function(ARGV)
  if begin() ~= tonumber(ARGV[1]) and ARGV[1] ~= '' then return {policies.number} end
  local said, stands, reply, twins = {}, {}, {policies.number, '', ''}, {}
  for at = 1, #ARGV[2], 20 do
    local content, other, bits, asked, sketch, profile = unpack4('<I4I4I2Bc8B', ARGV[2], at)
    local n = get(NODES, content)
    local lives = n[REP] == content and not has(n, DEPARTED)
    local twin = lives and n[SKEY] == sketch and n[PROFILE] == profile
    if lives and bits > 0 then
      spans.bind(content, other, bits)
      for p = 0, graded - 1 do
        if joins(bits, p) then stands[#stands + 1] = pack('<I4I4', standing(p, content)) end
      end
    end
    if twin then twins[#twins + 1] = whole(content) end
    said[#said + 1] = twin and '\2' or lives and '\1' or '\0'
    if asked == 1 then
      local page = lives and shown_by(content, 0) or 0
      reply[#reply + 1] = page ~= 0 and one_url(page) or ''
    end
  end
  finish()
  if #twins > 0 then call('SADD', BASE .. ':twins', unpack(twins)) end
  reply[2], reply[3] = concat(said), concat(stands)
  return reply
end)
