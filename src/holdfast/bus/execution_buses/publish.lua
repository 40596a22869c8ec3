-- Publishes events on the streams of a channel, unless something published before is lost.
--
-- KEYS[1]   {prefix}:CHANNEL:relayed:STORE   hash: `passed`, and a field for each stream that was written to
-- KEYS[2…]  {prefix}:CHANNEL:PARTITION   the streams, in the order of their partitions
-- ARGV[1]   the store whose events they are, and whose numbers
-- ARGV[2]   how far the store knows that it was published; nothing more is lost than comes after
-- ARGV[3]   how far it is published with these
-- ARGV[4]   the least number that may still come behind these, less one
-- ARGV[5…]  for each message its partition and its text
--
-- Gives 1, or 0 when something is lost, and then publishes nothing.
if redis.replicate_commands then
  redis.replicate_commands()
end
local passed = redis.call('HGET', KEYS[1], 'passed')
if not passed or tonumber(passed) < tonumber(ARGV[2]) then
  return 0
end
for place = 2, #KEYS do
  if redis.call('HEXISTS', KEYS[1], KEYS[place]) == 1 and redis.call('EXISTS', KEYS[place]) == 0 then
    return 0
  end
end
for place = 5, #ARGV, 2 do
  local stream = KEYS[2 + tonumber(ARGV[place])]
  redis.call('XADD', stream, '*', 'envelope', ARGV[place + 1], 'after', ARGV[4], 'store', ARGV[1])
  redis.call('HSET', KEYS[1], stream, 1)
end
if tonumber(ARGV[3]) > tonumber(passed) then
  redis.call('HSET', KEYS[1], 'passed', ARGV[3])
end
return 1
