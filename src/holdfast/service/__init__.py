"""The one door of every front end: where the state lives, addresses, commands, queries, views."""
