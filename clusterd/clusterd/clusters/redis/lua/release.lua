-- release(BASE; era, joined, (span, name)*) → 1; nothing where that was asked for in another era, or this home has joined
--         parts of two spans since
--
-- KEYS[1] BASE   the home shard (forest.lua, spans.lua)
-- ARGV    era; BASE:merged as it was when the parts were counted; packed, 8 bytes each: a span that has
--         no part but this home's, which becomes a cluster of this home, of that name
define('release', function(ARGV)
  if not spans.is_era(ARGV[1]) or (call('GET', BASE .. ':merged') or '0') ~= ARGV[2] then return '' end
  begin()
  for at = 1, #ARGV[3], 8 do
    local span, name = unpack4('<I4I4', ARGV[3], at)
    local anchor, p, id = spans.rooted(span)
    if anchor then
      local e = edit(ELEMENTS, id)
      e[PARENT], e[NAME] = 0, name
      recount(p + 3, 0, e[SIZE])
      spans.drop_part(span)
    end
  end
  finish()
  return '1'
end)
