"""Buses: durable ones for what has to be done, and others for what is good to know."""
