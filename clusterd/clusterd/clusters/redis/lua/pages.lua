-- pages(BASE; texts, limit) → for each text (4 bytes each) the pages that show it, packed, at most `limit`
--
-- KEYS[1] BASE   the second stream (stream.lua)

define('pages', function(ARGV)
  local limit, reply = tonumber(ARGV[2]), {}
  for at = 1, #ARGV[1], 4 do
    local t, out = get(TEXTS, u4(ARGV[1], at)), {}
    local page = t[HEAD]
    while page ~= 0 and #out < limit do
      out[#out + 1] = pack('<I4', page)
      page = get(PAGES, page)[NEXT]
      if page == t[HEAD] then page = 0 end
    end
    reply[#reply + 1] = table.concat(out)
  end
  return reply
end)
