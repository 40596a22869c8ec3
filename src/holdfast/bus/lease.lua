-- Acquire, renew or release a named lease by the clock of Redis.
--
-- KEYS[1]   {prefix}:lease:NAME   hash: `owner`, `secret`, `fence`, `expires_at`, `leased_at` (both in
--           microseconds)
-- ARGV[1]   acquire, renew or release
-- ARGV[2]   acquire: the owner; renew, release: the fence
-- ARGV[3]   the secret of the holder's token
-- ARGV[4]   acquire, renew: the duration in microseconds
--
-- The answer is the fence and the end of the lease, as texts, or nothing when another holder has the
-- lease. A fence is the time of the acquisition and above the last fence, so that fences keep growing
-- even after a flush of Redis.
if redis.replicate_commands then
  redis.replicate_commands()
end
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000000 + tonumber(time[2])
local held = redis.call('HMGET', KEYS[1], 'fence', 'secret', 'expires_at', 'leased_at')
local live = held[3] and tonumber(held[3]) > now
local fence = held[1]
if ARGV[1] == 'acquire' then
  if live then
    -- A lease that was taken before the clock was set back lasts its full duration from now.
    if held[4] and tonumber(held[4]) > now then
      local left = string.format('%.0f', tonumber(held[3]) - tonumber(held[4]) + now)
      redis.call('HSET', KEYS[1], 'expires_at', left, 'leased_at', string.format('%.0f', now))
    end
    return false
  end
  fence = string.format('%.0f', math.max(now, tonumber(fence or 0) + 1))
  redis.call('HSET', KEYS[1], 'owner', ARGV[2], 'secret', ARGV[3], 'fence', fence)
elseif not live or fence ~= ARGV[2] or held[2] ~= ARGV[3] then
  return false
end
local ends = 0
if ARGV[1] ~= 'release' then
  ends = now + tonumber(ARGV[4])
end
local told = string.format('%.0f', ends)
redis.call('HSET', KEYS[1], 'expires_at', told, 'leased_at', string.format('%.0f', now))
-- The key stays for a day after its end, so that the fence grows even if the clock is set back.
redis.call('PEXPIRE', KEYS[1], string.format('%.0f', math.max(0, ends - now) / 1000 + 86400000))
return {fence, told}
