-- adopt(BASE; era, (span, other)*) → 1; nothing where that was asked for in another era
--
-- KEYS[1] BASE   the home shard (forest.lua, spans.lua)
-- ARGV    era; packed, 8 bytes each: a span that was put under another, and that one: this home's part of it becomes the other's
define('adopt', function(ARGV)
  if not spans.is_era(ARGV[1]) then return '' end
  begin()
  for at = 1, #ARGV[2], 8 do
    local from, to = unpack4('<I4I4', ARGV[2], at)
    local anchor, p, id = spans.rooted(from)
    if anchor and from ~= to then
      local there = spans.rooted(to)
      edit(ELEMENTS, id)[PARENT] = SPANNED + to
      spans.drop_part(from)
      if there then join(p, anchor, there) else spans.set_part(to, p, anchor) end
    end
  end
  finish()
  return '1'
end)
