"""Sql text."""
