#!lua
-- save(book; version expected, version, rules, entries) → 1 stored, 0 where the stored version is not the expected one
--
-- KEYS[1]  <prefix>rb:{host}:book   HASH  version, rules (JSON as published), entries (zlib of JSON)
if (redis.call('HGET', KEYS[1], 'version') or '0') ~= ARGV[1] then
  return 0
end
redis.call('HSET', KEYS[1], 'version', ARGV[2], 'rules', ARGV[3], 'entries', ARGV[4])
return 1
