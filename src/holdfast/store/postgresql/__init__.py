"""The PostgreSQL driver.

Imports: tables → database → commit_outcome → session → pipeline → connection, statement;
database → joined_transaction, transaction → common_values.

- `common_values`  what many rows of one insert have in common, sent once
- `commit_outcome`  whether a transaction whose COMMIT went unanswered was committed
- `connection`  the address of a server, the settings of a connection, and the kinds of errors
- `database`  the database: one writer session, views, migrations
- `joined_transaction`  a transaction that an application began, on a connection of its own
- `pipeline`  the pipeline of one connection, in the protocol of libpq
- `session`  a connection that stays in pipeline mode
- `statement`  a statement with numbered parameters
- `tables`  the tables of a store as plain rows
- `transaction`  named statements inside one transaction
"""
