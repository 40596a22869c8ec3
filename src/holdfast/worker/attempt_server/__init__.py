"""Attempt server."""
