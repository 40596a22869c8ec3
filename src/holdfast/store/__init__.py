"""SQL and nothing else: drivers, migrations, named queries, group commit, hints."""
