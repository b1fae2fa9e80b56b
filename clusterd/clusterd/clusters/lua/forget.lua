-- forget(BASE; before, URL ids) → how many superseded versions, fetched before a time (6 bytes, big-endian), were forgotten
--
-- KEYS[1] BASE   the home shard (records.lua, settling.lua)
define('forget', function(ARGV)
  local texts, sketches = open('t'), open('c')
  local gone = 0

  local function release(node)
    local n = edit(NODES, node)
    n[REFS] = n[REFS] - 1
    local content = n[REP]
    local c = edit(NODES, content)
    c[CREFS] = c[CREFS] - 1
    if n[REFS] == 0 then free_text(texts, node) end
    free_content(sketches, content)
  end

  for at = 1, #ARGV[2], 4 do
    local u = u4(ARGV[2], at)
    local key = BASE .. ':o:' .. u
    local bytes, kept = call('GET', key) or '', {}
    for place = 1, #bytes, OLD_SIZE do
      if sub(bytes, place + 4, place + 9) < ARGV[1] then
        release(u4(bytes, place))
        gone = gone + 1
      else
        kept[#kept + 1] = sub(bytes, place, place + OLD_SIZE - 1)
      end
    end
    if #kept == 0 then
      call('DEL', key)
      call('SREM', BASE .. ':x', u)
    elseif #kept * OLD_SIZE < #bytes then
      call('SET', key, table.concat(kept))
    end
  end
  flush()
  close(texts)
  close(sketches)
  if gone > 0 then call('HINCRBY', BASE .. ':m', 'versions', -gone) end
  return gone
end)
