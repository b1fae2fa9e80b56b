-- roots(BASE; spans) → for each span (4 bytes each) that this home made 13 bytes: parent (0: a root), name, homes (a bit each),
--         policy; zeros where there is none
--
-- KEYS[1] BASE   the home shard (spans.lua)
define('roots', function(ARGV)
  local reply = {}
  for at = 1, #ARGV[1], 4 do
    reply[#reply + 1] = call('HGET', BASE .. ':spans', whole(u4(ARGV[1], at))) or rep('\0', 13)
  end
  return concat(reply)
end)
