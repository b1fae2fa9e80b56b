-- review(BASE; token, limit) → 1; 0: nothing is left to be reviewed; -1: the lease is lost
--
-- KEYS[1] BASE   a home shard of several (spans.lua);  BASE:review   the content from which pairs are to be looked at again;
--                's' or 'p' and a cursor: the spans that were made here, or its parts of spans, are
-- ARGV    token of the lease; contents, spans or parts at most
--
-- 1. A home that came back without its latest writes has lost what joined its clusters with others'. Its edges are there:
-- those to other homes are due again. 2. Its spans are what they were: one may have no parts any more, one may have been put
-- under another. 3. Other homes, too, have parts of spans of which it lost the record, or that it knows nothing of.
define('review', function(ARGV)
  if not held(ARGV[1]) then return -1 end
  local key = BASE .. ':review'
  local from = call('GET', key)
  if not from then return 0 end

  local function pairs_from(content)
    begin()
    local last = math.min(content + tonumber(ARGV[2]) - 1, counters[N])
    for one = content, last do
      local mine = get(NODES, one)[REP] == one and edges(one) or ''
      for at = 1, #mine, 6 do
        local other, bits = unpack4('<I4I2', mine, at)
        if spans.is_remote(other) then spans.due('<BI4I4I2', spans.REVIEWED, one, other, bits) end
      end
    end
    return last < counters[N] and whole(last + 1) or 's0'
  end

  local function scan(hash, cursor, due)
    local found = call('HSCAN', BASE .. hash, cursor, 'COUNT', ARGV[2])
    for at = 1, #found[2], 2 do due(tonumber(found[2][at]), found[2][at + 1]) end
    return found[1] ~= '0' and found[1]
  end

  local function made(span, record)
    local parent = u4(record, 1)
    if parent == 0 or parent == spans.CLOSED then
      spans.due('<BI4', spans.LOST, span)
    else
      spans.due('<BI4I4', spans.MOVED, span, parent)
    end
  end

  local function has_part(span, part)
    spans.due('<BI4I4B', spans.HELD, span, spans.place(), byte(part))
  end

  local kind, cursor = string.match(from, '^(%a)(%d+)$')
  local rest
  if not kind then
    rest = pairs_from(tonumber(from))
  elseif kind == 's' then
    cursor = scan(':spans', cursor, made)
    rest = cursor and 's' .. cursor or 'p0'
  else
    cursor = scan(':parts', cursor, has_part)
    rest = cursor and 'p' .. cursor
  end
  if rest then call('SET', key, rest) else call('DEL', key) end
  return 1
end)
