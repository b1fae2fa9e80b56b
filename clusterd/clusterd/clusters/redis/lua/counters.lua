-- Counters of the home shard, read once a call and written once.
--
--   BASE:i   4 bytes each: graded policies (GRADED); nodes, URLs and elements (the last ids given); the first free element; versions
--            and contents (how many); buckets and entries of each table (tables.lua); the nodes from and to which new
--            policies are to be built; clusters of two URLs and more: by identical text, by equal sketch, under each graded
--            policy

local pack, unpack4 = struct.pack, struct.unpack
local floor, find, sub, byte, format = math.floor, string.find, string.sub, string.byte, string.format
local rep, concat = string.rep, table.concat
-- Arguments of one call at most: Lua unpacks no more than 8,000.
local MOST = 4000

-- GRADED: how many places graded policies have; 32 times how often one of these was vacated, or taken again; 65,536 times the
-- vacant ones, a bit each (policies.lua). Who names another number than this does not know the policies.
local GRADED, N, V, E, FREE, VERSIONS, CONTENTS, BUILD, BUILD_TO, CLUSTERS = 1, 2, 3, 4, 5, 6, 7, 14, 15, 15
local counters, counted
local layouts = {}

local function u4(s, at)
  local a, b, c, d = byte(s, at, at + 3)
  return a + b * 256 + c * 65536 + d * 16777216
end

-- (A number that is handed to Redis is printed as a fraction, which costs three times as much as this.)
-- Small ones, as most are, are kept: the name of a place in a block, or of a field.
local WRITTEN = {}
local function whole(number)
  local text = WRITTEN[number]
  if text then return text end
  text = format('%d', number)
  if number < 8192 then WRITTEN[number] = text end
  return text
end

local function layout_of(size)
  layouts[size] = layouts[size] or '<' .. rep('I4', size)
  return layouts[size]
end

local function read_counters()
  local bytes = call('GET', BASE .. ':i') or rep('\0', 4 * (CLUSTERS + 2))
  counters, counted = {unpack4(layout_of(#bytes / 4), bytes)}, false
  counters.read = bytes
end

local function count(name, by)
  local value = counters[name] + by
  counters[name], counted = value, true
  return value
end

-- Note that something of so many URLs has another number of them now: 1 identical texts, 2 contents, 3 … policies.
local function recount(kind, before, after)
  if (before > 1) ~= (after > 1) then count(CLUSTERS + kind, after > 1 and 1 or -1) end
end

local function write_counters()
  if not counted then return end
  local size = CLUSTERS + 2 + counters[GRADED] % 32
  call('SET', BASE .. ':i', pack(layout_of(size), unpack(counters, 1, size)))
end
