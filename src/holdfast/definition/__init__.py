"""Workflow files: YAML or JSON text, read into the graph of the model, with places for mistakes."""
