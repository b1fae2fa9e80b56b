-- skips(BASE; limit, then identity, rule, message of each skip) → how many were new
--
-- KEYS[1] BASE   <prefix>rb:{:skips}
--   BASE:log      STREAM  m: the skip as a message; about the latest ``limit``
--   BASE:counts   HASH    rule → skips since the beginning
--   BASE:seen     SET     identities of the latest skips, at most ``limit``
--   BASE:before   SET     those before them, so that a delivery repeated is known again
define('skips', function(ARGV)
  local seen, before = BASE .. ':seen', BASE .. ':before'
  local limit, new = tonumber(ARGV[1]), 0
  for i = 2, #ARGV, 3 do
    if call('SISMEMBER', before, ARGV[i]) == 0 and call('SADD', seen, ARGV[i]) == 1 then
      call('XADD', BASE .. ':log', 'MAXLEN', '~', limit, '*', 'm', ARGV[i + 2])
      call('HINCRBY', BASE .. ':counts', ARGV[i + 1], 1)
      new = new + 1
      if call('SCARD', seen) >= limit then
        call('UNLINK', before) -- beside the others' calls: RENAME would free all of it at once, and hold them up
        call('RENAME', seen, before)
      end
    end
  end
  return new
end)
