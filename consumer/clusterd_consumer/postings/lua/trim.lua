-- trim(BASE; block*) → nothing; brings blocks that were appended to back to their size, as no byte passes Lua
--
-- KEYS[1] BASE   names the shard (blocks.lua)

define('trim', function(ARGV)
  for at = 1, #ARGV do
    local key = block_key(ARGV[at])
    if call('COPY', key, key .. 't', 'REPLACE') == 1 then call('RENAME', key .. 't', key) end
  end
end)
