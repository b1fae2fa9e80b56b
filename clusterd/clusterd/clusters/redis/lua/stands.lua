-- stands(BASE; (policy, content)*) → for each 9 bytes: 1 where the content has company or had it, else 0; size and name of its
--         cluster (forest.lua)
--
-- KEYS[1] BASE   the home shard (forest.lua)
-- ARGV    packed, 5 bytes each: policy, content
define('stands', function(ARGV)
  begin()
  local reply = {}
  for at = 1, #ARGV[1], 5 do
    local p, content = unpack4('<BI4', ARGV[1], at)
    if p < graded then
      reply[#reply + 1] = pack('<BI4I4', root(p, content) ~= 0 and 1 or 0, standing(p, content))
    else  -- (a policy that this home has not heard of yet)
      reply[#reply + 1] = pack('<BI4I4', 0, get(NODES, content)[CLIVE], content)
    end
  end
  finish()
  return concat(reply)
end)
