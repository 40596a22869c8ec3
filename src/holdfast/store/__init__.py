"""SQL and nothing else: databases, their statements, migrations, group commit and hints.

Imports: drivers → notifiers → postgresql → group_commit, sqlite → database → migrations → rest.

- `application_connections`  a kept connection, and the driver's own in one that was lent
- `connection_pool`  a pool of connections that threads borrow and return
- `database`  the port to a database and its transactions, store URLs, and waits with backoff
- `deadlocks`  open transactions on a SQLite file, and the refusal of waits that would never end
- `drivers`  opening the database and the notifier that a URL names
- `fork_guard`  the refusal of connections and files that a forked process has inherited
- `group_commit`  the queue before the writer of a process, which writes in groups
- `loop_connection`  an asynchronous connection of an application, as a thread sees it
- `loop_statements`  statements that the event loop of such a connection sends for a thread
- `migrations`  numbered schema files, and their application in order
- `notifier`  the port for hints that something was committed
- `notifiers`  a notifier for each way between processes
- `postgresql`  the PostgreSQL driver
- `sql_text`  named statements: their macros, their events and their parameters
- `sqlite`  the SQLite driver
- `tables`  the port to the tables of a store as plain rows
"""
