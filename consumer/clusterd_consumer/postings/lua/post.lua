-- post(BASE; bound, latest, read, (id, stored, hashes)*) → one string of proposed ids for each document, then stored sketches
--
-- KEYS[1] BASE   names the shard: every key of the script begins with it, so all lie in its hash slot
-- ARGV    bound, latest: of the lists; read: 1 to return also the sketches of what was proposed, as id, stored, …
--         for each document: id (4 bytes); its stored sketch, '' where it is there already; its hashes, 4 bytes each
--
-- Sketches are written before anything is posted, so that whoever finds a document finds its sketch.

local bound, latest, read = tonumber(ARGV[1]), tonumber(ARGV[2]), ARGV[3] == '1'
for i = 4, #ARGV, 3 do
  if ARGV[i + 1] ~= '' then
    local key, field = sketch_key(u4(ARGV[i], 1))
    call('HSET', key, field, ARGV[i + 1])
  end
end

local t = open('p')
local reply, wanted = {}, {}
for i = 4, #ARGV, 3 do
  local id, hashes, found = ARGV[i], ARGV[i + 2], {}
  for at = 1, #hashes, 4 do
    local ids = propose(t, string.sub(hashes, at, at + 3), id, bound, latest)
    for place = 1, #ids, 4 do
      local other = string.sub(ids, place, place + 3)
      if other ~= id and not found[other] then
        found[other] = true
        found[#found + 1] = other
        wanted[other] = true
      end
    end
  end
  reply[#reply + 1] = table.concat(found)
end
close(t)

if read then
  for id in pairs(wanted) do
    local key, field = sketch_key(u4(id, 1))
    reply[#reply + 1] = id
    reply[#reply + 1] = call('HGET', key, field) or ''
  end
end
return reply
