-- cut(BASE; (content, neighbour)*) → 1: the two are no neighbours any more, as far as this home's end of the edge goes
--
-- KEYS[1] BASE   the home shard (forest.lua)
-- ARGV    packed, 8 bytes each: a content of this home, one of another
--
-- A content that has departed keeps its edges till it is dismissed: who hung on it is read from these, whatever became of the
-- other end.
define('cut', function(ARGV)
  begin()
  for at = 1, #ARGV[1], 8 do
    local content, other = unpack4('<I4I4', ARGV[1], at)
    local mine = has(get(NODES, content), DEPARTED) and '' or edges(content)
    if mine ~= '' then set_edges(content, cut_edge(mine, other)) end
  end
  finish()
  return 1
end)
