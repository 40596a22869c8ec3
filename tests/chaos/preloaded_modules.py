"""Imported by the process that all the others are forked from: what they would each load anew.

No connection is opened here: none may be carried across a fork.
"""

from __future__ import annotations

import gc

from holdfast.store import migrations
from holdfast.store.notifiers import postgresql, sqlite
from holdfast.store.sql_text import queries
from holdfast.store.sql_text.macros import Dialect
from tests.chaos import leaky_drivers, process_jobs

LOADED = (process_jobs, leaky_drivers, postgresql, sqlite)

DIALECTS: tuple[Dialect, ...] = ("sqlite", "postgresql")
for _dialect in DIALECTS:
    dict(queries.load(_dialect))
    migrations.load(_dialect)

# What is here already is never garbage: looking for it in a child would only copy its pages.
gc.freeze()
