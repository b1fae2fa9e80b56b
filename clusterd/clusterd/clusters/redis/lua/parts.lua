-- parts(BASE; spans) → for each span (4 bytes each) 8 bytes: pages of its part in this home; a content of that (0: it has none)
--
-- KEYS[1] BASE   the home shard (forest.lua, spans.lua)
define('parts', function(ARGV)
  begin()
  local reply = {}
  for at = 1, #ARGV[1], 4 do
    local anchor, _, id = spans.rooted(u4(ARGV[1], at))
    reply[#reply + 1] = pack('<I4I4', anchor and get(ELEMENTS, id)[SIZE] or 0, anchor or 0)
  end
  finish()
  return concat(reply)
end)
