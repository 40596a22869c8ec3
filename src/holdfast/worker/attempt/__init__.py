"""Attempt."""
