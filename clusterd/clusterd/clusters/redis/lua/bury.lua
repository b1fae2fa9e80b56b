-- bury(BASE; texts) → those of the texts (4 bytes each) that no page shows: they are forgotten, and their numbers with them
--
-- KEYS[1] BASE   the second stream (stream.lua)
-- ARGV    packed, 5 bytes each: text, profile. One that is shown again waits no more: it is taken out of BASE:g by this call,
--         for it may come back there at once. The others stay until they were withdrawn.

-- Texts of a block that take less memory one by one, by half.
local FEW = 48

-- Forget the texts of a block whose records are written as zeros; few that are left are kept one by one, unless some are
-- still to come.
local function tidy(number, block)
  local bytes, left, size = call('GET', block), {}, TEXTS.size
  if not bytes then return end
  local nothing = rep('\0', size)
  for at = 0, PER - 1 do
    local record = sub(bytes, at * size + 1, (at + 1) * size)
    if record ~= nothing then left[#left + 1], left[#left + 2] = at, record end
  end
  local full = number < floor(tonumber(call('GET', BASE .. ':c')) / PER)
  if #left == 0 then
    call('DEL', block)
  elseif full and #left <= 2 * FEW then
    call('DEL', block)
    call('HSET', block .. ':left', unpack(left))
  end
end

define('bury', function(ARGV)
  open()
  local gone, blocks = {}, {}
  for at = 1, #ARGV[1], 5 do
    local text, profile = unpack4('<I4B', ARGV[1], at)
    local t = get(TEXTS, text)
    if t[LIVE] > 0 then
      call('LREM', BASE .. ':g', 1, format('%d', text * 256 + profile))
    else
      local block = block_of(TEXTS, text)
      cut(place(t[IDENTITY]), t[IDENTITY], pack('<I4', text))
      if TEXTS.left[text] then
        call('HDEL', block .. ':left', text % PER)
      else
        TEXTS.records[text], TEXTS.changed[text] = {0, 0, rep('\0', 8), 0, 0}, true
      end
      gone[#gone + 1], blocks[floor(text / PER)] = sub(ARGV[1], at, at + 3), block
    end
  end
  flush()
  for number, block in pairs(blocks) do tidy(number, block) end
  fit()
  write()
  return table.concat(gone)
end)
