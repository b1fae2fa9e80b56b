-- bury(BASE; texts) → those of the texts (4 bytes each) that no page shows: they are forgotten, and their numbers with them
--
-- KEYS[1] BASE   the second stream (stream.lua)

define('bury', function(ARGV)
  open()
  local gone, blocks = {}, {}
  for at = 1, #ARGV[1], 4 do
    local text = u4(ARGV[1], at)
    local t = get(TEXTS, text)
    if t[LIVE] == 0 then
      cut(place(t[IDENTITY]), t[IDENTITY], pack('<I4', text))
      TEXTS.records[text], TEXTS.changed[text] = {0, 0, rep('\0', 8), 0, 0}, true
      gone[#gone + 1], blocks[block_of(TEXTS, text)] = sub(ARGV[1], at, at + 3), true
    end
  end
  flush()
  for block in pairs(blocks) do
    if call('GET', block) == rep('\0', PER * TEXTS.size) then call('DEL', block) end
  end
  fit()
  write()
  return table.concat(gone)
end)
