-- The strings of URLs, twelve to a key.
--
--   BASE:s:<id / 12>    where each of the twelve ends (3 bytes each, counted from byte 36), then the URLs
--
-- Many small keys would cost more than half as much again; a block that nobody adds to is of the size that it needs.

-- Those that a call adds, by their ids, which are in a row.
local new_urls, first_url, last_url
local write_urls, url_of, one_url
do
  local PACK, HEADER = 12, 36
  local ENDS = '<' .. rep('I3', PACK)
  local based, blocks, read

  local function block_of(block)
    local bytes, key = read[block], blocks .. whole(block)
    if not bytes then
      bytes = call('GET', key) or ''
      read[block] = bytes
    end
    return bytes, key
  end

  -- One URL more in a block that was begun: all that end behind it, yet without a URL, end where it does.
  local function add_url(id)
    local bytes, key = block_of(floor(id / PACK))
    local slot, url = id % PACK, new_urls[id]
    local ends = rep(pack('<I3', #bytes - HEADER + #url), PACK - slot)
    call('SET', key, sub(bytes, 1, 3 * slot) .. ends .. sub(bytes, HEADER + 1) .. url)
  end

  function write_urls()
    local id = first_url
    if id and id == last_url and id % PACK > 0 and block_of(floor(id / PACK)) ~= '' then return add_url(id) end
    while id and id <= last_url do
      local block, ends, parts, key, size = floor(id / PACK), {}, {'', ''}, nil, 0
      if id % PACK > 0 then
        parts[2], key = block_of(block)
        if parts[2] ~= '' then
          ends, parts[2] = {unpack4(ENDS, parts[2])}, sub(parts[2], HEADER + 1)
          size = #parts[2]
        end
      else
        key = blocks .. whole(block)
      end
      for slot = 0, PACK - 1 do
        local url = new_urls[block * PACK + slot]
        if url then
          size = size + #url
          parts[#parts + 1] = url
        end
        if url or not ends[slot + 1] then ends[slot + 1] = size end
      end
      parts[1] = pack(ENDS, unpack(ends, 1, PACK))
      call('SET', key, concat(parts))
      id = (block + 1) * PACK
    end
  end

  function url_of(id)
    local url = new_urls[id]
    if url then return url end
    local bytes, slot = block_of(floor(id / PACK)), id % PACK
    if slot == 0 then return sub(bytes, HEADER + 1, HEADER + unpack4('<I3', bytes)) end
    local from, to = unpack4('<I3I3', bytes, 3 * slot - 2)
    return sub(bytes, HEADER + 1 + from, HEADER + to)
  end

  -- The same where nothing else is asked of the block: only the URL's own bytes pass Lua, which hashes what it is given.
  function one_url(id)
    local url = new_urls[id]
    if url then return url end
    local key, slot = blocks .. whole(floor(id / PACK)), id % PACK
    local ends = call('GETRANGE', key, slot > 0 and whole(3 * slot - 3) or '0', whole(3 * slot + 2))
    local from, to = unpack4('<I3I3', slot > 0 and ends or '\0\0\0' .. ends)
    return call('GETRANGE', key, whole(HEADER + from), whole(HEADER + to - 1))
  end

  resets[#resets + 1] = function()
    if based ~= BASE then based, blocks = BASE, BASE .. ':s:' end
    new_urls, read, first_url = {}, {}, nil
  end
end
