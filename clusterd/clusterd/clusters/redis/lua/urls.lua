-- urls(BASE; URL ids) → the URLs of these ids (4 bytes each)
--
-- KEYS[1] BASE   the home shard (records.lua)
define('urls', function(ARGV)
  local reply = {}
  for at = 1, #ARGV[1], 4 do reply[#reply + 1] = url_of(u4(ARGV[1], at)) end
  return reply
end)
