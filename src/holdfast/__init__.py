"""Holdfast: a durable pipeline engine."""
