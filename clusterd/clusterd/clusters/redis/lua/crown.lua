-- crown(BASE; era, (policy, content, neighbour, span)*) → for each pair 5 bytes: the span that the content's cluster is part
--         of, 0 where the two are no neighbours (any more), 2^32 - 1 where it is part of none; 1 where that was made now, else
--         0. Nothing where spans were asked for in another era
--
-- KEYS[1] BASE   the home shard (records.lua, forest.lua, spans.lua)
-- ARGV    era; packed, 13 bytes each: policy, content of this home, its neighbour in another, and the span that its cluster is
--         to become part of where it is of none: 0 no one, 2^32 - 1 a new one, which the neighbour's home may have a part of
define('crown', function(ARGV)
  begin()
  local NONE = 4294967295
  local is_era, reply = nil, {}

  -- Let the cluster of a content become a part of a span; of its part in this home where it has one.
  local function enlist(p, content, span, other)
    local anchor, id = nil, root(p, content)
    if span ~= NONE then anchor = spans.rooted(span) end
    if anchor then
      join(p, content, anchor)
      return span
    end
    if id == 0 then
      id = new_element(content)
      settle_alone(p, content, id)
    end
    local e = edit(ELEMENTS, id)
    if span == NONE then span = spans.make(e[NAME], spans.here() + spans.home_of(other), p) end
    recount(p + 3, e[SIZE], 0)
    e[PARENT] = SPANNED + span
    spans.set_part(span, p, content)
    return span
  end

  local wanted = {}
  for at = 10, #ARGV[2], 13 do
    local span = u4(ARGV[2], at)
    if span ~= 0 and span ~= NONE then wanted[#wanted + 1] = whole(span) end
  end
  spans.read_parts(wanted)

  for at = 1, #ARGV[2], 13 do
    local p, content, other, span = unpack4('<BI4I4I4', ARGV[2], at)
    local n, mine, is_new = get(NODES, content), 0, 0
    local edge = p < graded and n[REP] == content and not has(n, DISMISSED) and edge_at(edges(content), other)
    if edge and joins(unpack4('<I2', edges(content), edge + 4), p) then
      local id = root(p, content)
      local parent = id ~= 0 and get(ELEMENTS, id)[PARENT] or 0
      mine = parent ~= 0 and parent - SPANNED or NONE
      if mine == NONE and span ~= 0 then
        if is_era == nil then is_era = spans.is_era(ARGV[1]) end
        if not is_era then
          finish()
          return ''
        end
        mine = enlist(p, content, span, other)
        is_new = span == NONE and 1 or 0
      end
    end
    reply[#reply + 1] = pack('<I4B', mine, is_new)
  end
  finish()
  return concat(reply)
end)
