#!lua
-- save(book; revision expected, version, rules, entries) → 1 stored, 0 where somebody has saved since
--
-- KEYS[1]  <prefix>rb:{host}:book   HASH  revision (times saved), version, rules (JSON as published), entries (zlib of JSON)
if (redis.call('HGET', KEYS[1], 'revision') or '0') ~= ARGV[1] then
  return 0
end
redis.call('HSET', KEYS[1], 'version', ARGV[2], 'rules', ARGV[3], 'entries', ARGV[4])
redis.call('HINCRBY', KEYS[1], 'revision', 1)
return 1
