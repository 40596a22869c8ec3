"""Authentication: recognition of callers, and limits on their rate and on wrong tokens.

Import order: recognition → auth_throttle → known_tokens, rate_limits, audit_throttle.

- `audit_throttle`  audit entries for callers without a good token, counted instead of repeated
- `auth_throttle`  a limit on wrong tokens for each address and for all addresses together
- `known_tokens`  tokens that were found good, kept until the store changes
- `rate_limits`  rates for each name, with bursts, and the address that a client counts for
- `recognition`  the caller of a request, by token or by the cookie of a browser
"""
