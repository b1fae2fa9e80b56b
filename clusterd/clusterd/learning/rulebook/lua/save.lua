-- save(BASE; revision expected, version, rules, entries) → 1 stored, 0 where somebody has saved since
--
-- KEYS[1] BASE   a host, <prefix>rb:{host}
--   BASE:book   HASH  revision (times saved), version, rules (JSON as published), entries (zlib of JSON)
define('save', function(ARGV)
  local book = BASE .. ':book'
  if (call('HGET', book, 'revision') or '0') ~= ARGV[1] then return 0 end
  call('HSET', book, 'version', ARGV[2], 'rules', ARGV[3], 'entries', ARGV[4])
  call('HINCRBY', book, 'revision', 1)
  return 1
end)
