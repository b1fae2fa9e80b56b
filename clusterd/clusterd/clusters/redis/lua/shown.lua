-- shown(BASE; contents, limit) → for each content (4 bytes each) two strings: size and name of its cluster under the first
--         graded policy; ids of URLs that show it, at most `limit`
--
-- KEYS[1] BASE   the home shard (records.lua, forest.lua)
define('shown', function(ARGV)
  begin()
  local limit, first, reply = tonumber(ARGV[2]), 0, {}
  while policies.vacant[first] do first = first + 1 end
  for at = 1, #ARGV[1], 4 do
    local content = u4(ARGV[1], at)
    local out, text = {}, content
    repeat
      local n = get(NODES, text)
      local u = n[HEAD]
      while u ~= 0 and #out < limit do
        out[#out + 1] = pack('<I4', u)
        u = get_field(PAGES, u, NEXT)
      end
      text = n[TNEXT]
    until text == 0 or #out >= limit
    reply[#reply + 1] = first < graded and pack('<I4I4', standing(first, content)) or ''
    reply[#reply + 1] = concat(out)
  end
  finish()
  return reply
end)
