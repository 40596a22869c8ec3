-- Removes from a stream what every group of it has acknowledged.
--
-- KEYS[1]   {prefix}:CHANNEL:PARTITION   the stream
-- ARGV[…]   groups that have to be there; while one is missing nothing is removed
--
-- Gives how many messages were removed.
local function fields(flat)
  local named = {}
  for place = 1, #flat, 2 do
    named[flat[place]] = flat[place + 1]
  end
  return named
end

local function before(left, right)
  local left_time, left_place = string.match(left, '(%d+)-(%d+)')
  local right_time, right_place = string.match(right, '(%d+)-(%d+)')
  if tonumber(left_time) ~= tonumber(right_time) then
    return tonumber(left_time) < tonumber(right_time)
  end
  return tonumber(left_place) < tonumber(right_place)
end

if redis.call('EXISTS', KEYS[1]) == 0 then
  return 0
end
local known = {}
local least = nil
for _, flat in ipairs(redis.call('XINFO', 'GROUPS', KEYS[1])) do
  local group = fields(flat)
  known[group['name']] = true
  local delivered = group['last-delivered-id']
  local time, place = string.match(delivered, '(%d+)-(%d+)')
  local first = time .. '-' .. string.format('%d', tonumber(place) + 1)
  -- At the end of a moment, as where a group was rewound to, which no number of Lua can tell.
  if tonumber(place) >= 2 ^ 53 then
    first = string.format('%d', tonumber(time) + 1) .. '-0'
  end
  local pending = redis.call('XPENDING', KEYS[1], group['name'], '-', '+', 1)
  if #pending > 0 and before(pending[1][1], first) then
    first = pending[1][1]
  end
  if not least or before(first, least) then
    least = first
  end
end
for _, name in ipairs(ARGV) do
  if not known[name] then
    return 0
  end
end
if not least then
  return 0
end
return redis.call('XTRIM', KEYS[1], 'MINID', least)
