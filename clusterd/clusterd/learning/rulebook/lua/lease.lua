-- lease(BASE; owner, milliseconds) → 1 where the owner has the lease now; with 0 milliseconds it is given back
--
-- KEYS[1] BASE   a host, <prefix>rb:{host}
--   BASE:lease   STRING  owner, expires by itself
define('lease', function(ARGV)
  local owner = call('GET', BASE .. ':lease')
  if owner and owner ~= ARGV[1] then return 0 end
  if ARGV[2] == '0' then
    call('DEL', BASE .. ':lease')
  else
    call('SET', BASE .. ':lease', ARGV[1], 'PX', ARGV[2])
  end
  return 1
end)
