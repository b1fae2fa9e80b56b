-- Stored sketches by document, PACK to a string key, in any order: document mod PACK (5 bits) and length (4 bytes
-- in all), bytes.
--
--   BASE:k:<document / 21>
--
-- Many small keys, or a hash whose values are long, would cost more than half as much again. So many full sketches fill
-- an allocation of 7 KB (of 8, a seventh would be lost to rounding). A sketch that nobody has stored is appended by a
-- native command; what follows is for the rest. Lua hashes every byte that passes it.

local PACK = 21
local blocks

local function block_key(block)
  return BASE .. ':k:' .. block
end

-- The bytes of a block without the sketch of a document; whether it is there once, and is `same`.
local function without(bytes, id, same)
  local parts, from, at, wanted, there, equal = {}, 1, 1, id % PACK, 0, false
  while at < #bytes do
    local head = u4(bytes, at)
    local stop = at + 4 + floor(head / 32)
    if head % 32 == wanted then
      there, equal = there + 1, sub(bytes, at + 4, stop - 1) == same
      parts[there], from = sub(bytes, from, at - 1), stop
    end
    at = stop
  end
  parts[there + 1] = sub(bytes, from)
  return table.concat(parts), there == 1 and equal
end

local function set_sketch(id, value)
  local block = floor(id / PACK)
  local rest, same = without(blocks[block] or call('GET', block_key(block)) or '', id, value)
  if same then return end
  blocks[block] = value and rest .. pack('<I4', id % PACK + 32 * #value) .. value or rest
end

local function write_blocks()
  for block, bytes in pairs(blocks) do
    if bytes == '' then call('DEL', block_key(block)) else call('SET', block_key(block), bytes) end
  end
end

resets[#resets + 1] = function() blocks = {} end
