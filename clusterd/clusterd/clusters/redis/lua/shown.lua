-- shown(BASE; contents, limit, most) → for each content (4 bytes each) two strings: size and name of its cluster under the
--         first graded policy; ids of URLs that show it, at most `limit`. Then 1 where the last of them has more of these.
--
-- KEYS[1] BASE   the home shard (records.lua, forest.lua)
--
-- Contents that are left when `most` URLs are found, each counting as one, are not answered: one may have a million.
define('shown', function(ARGV)
  begin()
  local limit, left, first, reply, more = tonumber(ARGV[2]), tonumber(ARGV[3]), 0, {}, 0
  while policies.vacant[first] do first = first + 1 end
  for at = 1, #ARGV[1], 4 do
    if left <= 0 then break end
    local content = u4(ARGV[1], at)
    local out, text, most, u = {}, content, math.min(limit, left), 0
    repeat
      local n = get(NODES, text)
      u = n[HEAD]
      while u ~= 0 and #out < most do
        out[#out + 1] = pack('<I4', u)
        u = get_field(PAGES, u, NEXT)
      end
      text = n[TNEXT]
    until text == 0 or #out >= most
    if most < limit and (u ~= 0 or text ~= 0) then more = 1 end
    left = left - math.max(1, #out)
    reply[#reply + 1] = first < graded and pack('<I4I4', standing(first, content)) or ''
    reply[#reply + 1] = concat(out)
  end
  finish()
  reply[#reply + 1] = more
  return reply
end)
