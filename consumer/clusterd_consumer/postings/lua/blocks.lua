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

-- The bytes of a block without the sketch of a document.
local function without(bytes, id)
  local parts, at, wanted = {}, 1, id % PACK
  while at < #bytes do
    local head = u4(bytes, at)
    local stop = at + 4 + floor(head / 32)
    if head % 32 ~= wanted then parts[#parts + 1] = sub(bytes, at, stop - 1) end
    at = stop
  end
  return table.concat(parts)
end

local function set_sketch(id, value)
  local block = floor(id / PACK)
  blocks[block] = without(blocks[block] or call('GET', block_key(block)) or '', id)
  if value then blocks[block] = blocks[block] .. pack('<I4', id % PACK + 32 * #value) .. value end
end

local function write_blocks()
  for block, bytes in pairs(blocks) do
    if bytes == '' then call('DEL', block_key(block)) else call('SET', block_key(block), bytes) end
  end
end

resets[#resets + 1] = function() blocks = {} end
