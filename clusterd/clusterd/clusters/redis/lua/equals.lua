-- equals(BASE; texts) → for each text 8 bytes: the node of this home that is it (0: none), and how many pages show it; then for
--         each that was asked for one the URL of a page that shows it, or its content ('' where none does)
--
-- KEYS[1] BASE   the home shard (records.lua)
-- ARGV    packed, 18 bytes each: sketch identity, profile, text; 1 where a URL is asked for
define('equals', function(ARGV)
  begin()
  open(SKETCHES)
  open(TEXTS)
  local said, reply, heads = {}, {''}, {}
  for at = 1, #ARGV[1], 18 do heads[#heads + 1] = sub(ARGV[1], at, at + 3) end
  prefetch(SKETCHES, concat(heads))
  for at = 1, #ARGV[1], 18 do
    local sketch, profile, text, asked = unpack4('<c8Bc8B', ARGV[1], at)
    local content = find_content(sketch, profile, false)
    local node = content and find_text(text, content)
    said[#said + 1] = pack('<I4I4', node or 0, node and get(NODES, node)[LIVE] or 0)
    if asked == 1 then
      local page = node and get(NODES, node)[HEAD] or 0
      if page == 0 and content then page = shown_by(content, 0) end
      reply[#reply + 1] = page ~= 0 and one_url(page) or ''
    end
  end
  reply[1] = concat(said)
  return reply
end)
