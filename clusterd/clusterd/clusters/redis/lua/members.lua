-- members(BASE; slot, URL hash or content, content, text, page, limit) → where a URL's cluster is and a chunk of its members
--
-- KEYS[1] BASE   the home shard (records.lua, forest.lua)
-- ARGV    slot: of a graded policy, or -1 for identical text; hash of the URL, or 4 bytes: a content (a text, for -1);
--         where to go on (0, 0, 0 to begin); how many
-- returns name, content, text, page: where to go on (content 0: that was all); URL ids, packed. Empty for an unknown URL;
--         the name alone where what one was to go on from has left the cluster, or the URL has: then begin again
--
-- Walks the ring of the cluster's contents, of each the chain of texts, of each the chain of URLs.
define('members', function(ARGV)
  local p, limit = tonumber(ARGV[1]), tonumber(ARGV[6])
  begin()
  open(URLS)
  local own = u4(ARGV[2], 1)
  if #ARGV[2] > 4 then
    local asked = page_by_hash(ARGV[2])
    if not asked then return {} end
    own = get(PAGES, asked)[NODE]
  end
  local home = get(NODES, own)[REP]
  local name = own
  if p >= 0 then
    local _
    _, name = standing(p, home)
  end

  local out = {}
  local content, text, page = tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
  local steps = 0

  -- The URLs of one text, from `page` on; returns where it stopped, 0 at the end of the chain.
  local function walk(head)
    local u = page ~= 0 and page or head
    while u ~= 0 and #out < limit do
      out[#out + 1] = pack('<I4', u)
      u = get_field(PAGES, u, NEXT)
    end
    return u
  end

  -- Whether that is where the URL's cluster is still.
  local function stands()
    if page ~= 0 and get(PAGES, page)[NODE] ~= text then return false end
    if p < 0 then return text == own end
    if get(NODES, text)[REP] ~= content then return false end
    local id = root(p, content)
    return content == home or id ~= 0 and id == root(p, home)
  end

  if content == 0 then
    content, text = home, p < 0 and own or home
  elseif not stands() then
    finish()
    return {name}
  end
  local finished = false
  while #out < limit and steps < 2 * limit and not finished do
    steps = steps + 1
    page = walk(get(NODES, text)[HEAD])
    if page == 0 then
      if p < 0 then
        finished = true
      else
        text = get(NODES, text)[TNEXT]
        if text == 0 then
          local after = place_of(content)[3 * p + AFTER]
          content = after ~= 0 and after or home
          text = content
          finished = content == home
        end
      end
    end
  end
  finish()
  return {name, finished and 0 or content, text, page, concat(out)}
end)
