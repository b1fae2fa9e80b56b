-- shows(BASE; page) → the text that a page shows (4 bytes, 0: none) and its profile
--
-- KEYS[1] BASE   the second stream (stream.lua)

define('shows', function(ARGV)
  local text = get(PAGES, tonumber(ARGV[1]))[TEXT]
  return pack('<I4B', text, get(TEXTS, text)[PROFILE])
end)
