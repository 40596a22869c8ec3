"""Secrets of steps, and their redaction from everything that is written down.

Imports go down: `secret_rules` | `secrets`, `redaction`, `spellings`.

- `secrets`  the secrets that a worker has, and those that workflows name
- `secret_rules`  which texts are redacted, and which are refused
- `redaction`  the replacement of secrets in bytes, texts and JSON
- `spellings`  secrets in the escapes of JSON, HTML, URLs, shells, SQL and CSV
"""
