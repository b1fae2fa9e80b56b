-- label(BASE; label) → the number of a crawl's or sweep's label, a new one where it has none
--
-- KEYS[1] BASE   the home shard;  BASE:l hash: label → number
define('label', function(ARGV)
  local number = call('HGET', BASE .. ':l', ARGV[1])
  if not number then
    number = call('HLEN', BASE .. ':l') + 1
    call('HSET', BASE .. ':l', ARGV[1], number)
  end
  return tonumber(number)
end)
