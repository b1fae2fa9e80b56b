-- lead(BASE; (span, root)*) → 1: spans that were put under others lead straight to the root of these
--
-- KEYS[1] BASE   the home shard (spans.lua)
-- ARGV    packed, 8 bytes each
define('lead', function(ARGV)
  for at = 1, #ARGV[1], 8 do
    local span, to = unpack4('<I4I4', ARGV[1], at)
    local parent, name, homes, p = spans.read(span)
    if parent and parent > 0 and parent ~= spans.CLOSED then spans.write(span, to, name, homes, p) end
  end
  return 1
end)
