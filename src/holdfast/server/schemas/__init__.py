"""Schemas: the responses of HTTP, for the OpenAPI document.

Import order: one module.

- `responses`  a schema with its example for each response, and the problems of each status
"""
