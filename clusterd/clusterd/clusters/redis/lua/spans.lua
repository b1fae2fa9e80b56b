-- Clusters over several homes: what each home knows of them. (A store on one Redis has one home and nothing of this.)
--
--   BASE:first   numbers of this home's contents begin behind it; not there where the store has but one home
--   BASE:parts   hash: span → policy (1 byte), anchor (4): any content of this home's cluster that is a part of it; pages of
--                that part (4)
--   BASE:spans   hash: span that was made here → parent, name, homes that may have a part (a bit each), 4 bytes each;
--                policy (1)
--   BASE:spanned hash: policy → spans that were made here, are roots and have parts in two homes and more
--   BASE:due     list of what has to be done in several homes (spans/):
--                1, content, neighbour in another home, bits of the policies: a pair to be united; ALL: with all of these
--                2, span, span: to be united, since this home has joined their parts
--                3, span, span that it was put under: its parts become the other's
--                4, span: its part in this home is gone
--                5: as 1, of a content that has moved
--                6, span, home, policy: it has a part there, and may have lost its record
--   BASE:merged  counts up when this home joins the parts of two spans
--   BASE:era     counts up when edges were cut or parts have moved: what was found out before no longer counts
--   BASE:twins   set: contents whose sketch a content of another home has, too
--
-- A span is a node of a union-find over the homes' clusters, one tree for each policy: the larger root is put under the
-- smaller by compare-and-set on its one record. A home's cluster is part of one span at most, a span has one part at most
-- in each home; the root element of that part has SPANNED + span for its parent. A span is closed (its parent is CLOSED) while
-- it is looked at whether it has but one part left.

local SPANNED = 2147483648
local spans = {CLOSED = 4294967295, ALL = 4294967295, PAIR = 1, UNION = 2, MOVED = 3, LOST = 4, REVIEWED = 5, HELD = 6}
do
  local RANGE = 134217728
  local RECORD = '<I4I4I4B'
  local PART = '<BI4I4'
  -- Of one call: parts that were read (false: there is none), those that are to be written, and the records of spans that were
  -- read or written (false: there is none).
  local first, parts, parts_dirty, records

  resets[#resets + 1] = function() first, parts, parts_dirty, records, spans.unions = nil, {}, {}, {}, nil end

  -- The number behind which this home's contents begin; nil where there is but one home.
  function spans.first()
    if first == nil then first = tonumber(call('GET', BASE .. ':first')) or false end
    return first or nil
  end

  function spans.is_remote(content)
    return spans.first() and floor(content / RANGE) ~= first / RANGE
  end

  -- Whether this home has hardly any numbers left. (What is over is for names of clusters that fall apart.)
  function spans.is_full()
    if spans.first() then return counters[N] - first > RANGE - 65536 end
    return counters[N] > 4294967296 - 65536
  end

  -- Which home this is, and its bit.
  function spans.place()
    return spans.first() / RANGE
  end

  function spans.here()
    return 2 ^ spans.place()
  end

  function spans.home_of(content)
    return 2 ^ floor(content / RANGE)
  end

  function spans.due(form, ...)
    call('RPUSH', BASE .. ':due', pack(form, ...))
  end

  function spans.is_era(era)
    return (call('GET', BASE .. ':era') or '0') == era
  end

  -- What a hash of this home has of a span, false where that is nothing; `read`: what was asked for before.
  local function of_span(read, hash, layout, span)
    if read[span] == nil then
      local bytes = call('HGET', BASE .. hash, whole(span))
      read[span] = bytes and {unpack4(layout, bytes)}
    end
    return read[span]
  end

  local function read_part(span)
    return of_span(parts, ':parts', PART, span)
  end

  -- Read this home's parts of spans before they are asked for one by one; `numbers`: as they are written.
  function spans.read_parts(numbers)
    for start = 1, #numbers, MOST do
      local found = call('HMGET', BASE .. ':parts', unpack(numbers, start, math.min(#numbers, start + MOST - 1)))
      for at, bytes in ipairs(found) do
        parts[tonumber(numbers[start + at - 1])] = bytes and {unpack4(PART, bytes)}
      end
    end
  end

  -- Policy and anchor of this home's part of a span; nil where it has none.
  function spans.part(span)
    local part = read_part(span)
    if part then return part[1], part[2] end
  end

  function spans.set_part(span, p, anchor)
    local part = read_part(span)
    parts[span], parts_dirty[span] = {p, anchor, part and part[3] or 0}, true
  end

  function spans.drop_part(span)
    call('HDEL', BASE .. ':parts', whole(span))
    parts[span] = false
  end

  -- Note how many pages a part has by now.
  function spans.resize_part(span, size)
    local part = read_part(span)
    if part and part[3] ~= size then
      part[3], parts_dirty[span] = size, true
    end
  end

  function spans.write_parts()
    local words = {}
    for span in pairs(parts_dirty) do
      if parts[span] then words[#words + 1], words[#words + 2] = whole(span), pack(PART, unpack(parts[span])) end
    end
    for start = 1, #words, MOST do
      call('HSET', BASE .. ':parts', unpack(words, start, math.min(#words, start + MOST - 1)))
    end
  end

  -- Let another content stand for a part that one is about to leave.
  function spans.hand_over(span, content, other)
    local p, anchor = spans.part(span)
    if anchor == content and other ~= content then spans.set_part(span, p, other) end
  end

  -- A part has lost its last content.
  function spans.lose(span)
    spans.drop_part(span)
    spans.due('<BI4', spans.LOST, span)
  end

  -- The parent of an element that was made of two roots, of these parents.
  function spans.merged(a, b)
    if a == 0 or b == 0 or a == b then return math.max(a, b) end
    local kept, gone = math.min(a, b), math.max(a, b)
    spans.drop_part(gone - SPANNED)
    spans.due('<BI4I4', spans.UNION, kept - SPANNED, gone - SPANNED)
    call('INCR', BASE .. ':merged')
    spans.unions = (spans.unions or '') .. pack('<I4I4', kept - SPANNED, gone - SPANNED)
    return kept
  end

  -- Parent, name, homes, policy; nil where there is no such span.
  function spans.read(span)
    local record = of_span(records, ':spans', RECORD, span)
    if record then return unpack(record) end
  end

  -- Make a span, which nobody knows yet.
  function spans.make(name, homes, p)
    local span = spans.fresh_number()
    records[span], parts[span] = false, false
    spans.write(span, 0, name, homes, p)
    return span
  end

  -- Whether a span is to be counted: a root with parts in several homes.
  local function counts(parent, homes)
    if parent ~= 0 then return 0 end
    while homes > 0 and homes % 2 == 0 do homes = homes / 2 end
    return homes > 1 and 1 or 0
  end

  -- Write a span; without a parent it is deleted.
  function spans.write(span, parent, name, homes, p)
    local before, _, had, policy = spans.read(span)
    local more = counts(parent, homes) - counts(before, had)
    if more ~= 0 then call('HINCRBY', BASE .. ':spanned', p or policy, more) end
    records[span] = parent and {parent, name, homes, p} or false
    if parent then
      call('HSET', BASE .. ':spans', whole(span), pack(RECORD, parent, name, homes, p))
    else
      call('HDEL', BASE .. ':spans', whole(span))
    end
  end
end
