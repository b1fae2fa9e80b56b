-- shut(BASE; (span, what, homes)*) → 1
--
-- KEYS[1] BASE   the home shard (spans.lua)
-- ARGV    packed, 9 bytes each: a span that this home made; 1 close it, where it is a root; 0 open it again: these homes
--         (a bit each) have a part; 2 forget it, where it is closed; 3 forget it, where it was put under another whose it
--         all is by now
define('shut', function(ARGV)
  for at = 1, #ARGV[1], 9 do
    local span, what, parts = unpack4('<I4BI4', ARGV[1], at)
    local parent, name, homes, p = spans.read(span)
    if what == 1 and parent == 0 then
      spans.write(span, spans.CLOSED, name, homes, p)
    elseif what == 0 and parent == spans.CLOSED then
      spans.write(span, 0, name, parts, p)
    elseif parent and (what == 2 and parent == spans.CLOSED or what == 3 and parent > 0 and parent < spans.CLOSED) then
      spans.write(span)
    end
  end
  return 1
end)
