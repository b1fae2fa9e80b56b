-- post(BASE; bound, latest, (id, stored, hashes)*) → one string of proposed ids for each document
--
-- KEYS[1] BASE   names the shard: every key of the script begins with it, so all lie in its hash slot
-- ARGV    bound, latest: of the lists
--         for each document: id (4 bytes); its stored sketch, '' where it is there already; its hashes, 4 bytes each
--
-- Sketches are written before anything is posted, so that whoever finds a document finds its sketch.
define('post', function(ARGV)
  local bound, latest = tonumber(ARGV[1]), tonumber(ARGV[2])
  local sketches = packs('k')
  local hashes = {}
  for i = 3, #ARGV, 3 do
    if ARGV[i + 1] ~= '' then keep_value(sketches, u4(ARGV[i], 1), ARGV[i + 1]) end
    hashes[#hashes + 1] = ARGV[i + 2]
  end
  write_values(sketches)

  local t = open('p')
  local buckets, k = prefetch(t, table.concat(hashes)), 0
  local reply, count, added = {}, 0, 0
  local cache, dirty = t.cache, t.dirty
  for i = 3, #ARGV, 3 do
    local id, mine, found, seen = ARGV[i], ARGV[i + 2], nil, nil
    for at = 1, #mine, 4 do
      k = k + 1
      local head, bucket = sub(mine, at + 1, at + 3), buckets[k]
      local bytes = cache[bucket]
      if not find(bytes, head, 1, true) then
        -- Most values are new: nobody else is there.
        cache[bucket], dirty[bucket], added = bytes .. head .. id, true, added + 1
      else
        local ids = propose(t, sub(mine, at, at + 3), id, bound, latest)
        if ids ~= '' and not found then found, seen = {}, {} end
        for place = 1, #ids, 4 do
          local other = sub(ids, place, place + 3)
          if other ~= id and not seen[other] then
            seen[other] = true
            found[#found + 1] = other
          end
        end
      end
    end
    count = count + 1
    reply[count] = found and table.concat(found) or ''
  end
  t.n = t.n + added
  close(t)
  return reply
end)
