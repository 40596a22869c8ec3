"""The SQLite driver.

Imports: database → file_identity → saved_copy → backup → connection;
database → transaction;
database → foreign_commits, lock_holder, lock_waits.

- `backup`  a copy of a store that others write to, and the restoring of a store from a copy
- `connection`  the settings of a connection, and checkpoints of the write-ahead log
- `database`  the database: one writer connection, views, and transactions of the application
- `file_identity`  the check that the file at the store's path is the one that is open
- `foreign_commits`  commits of other connections, told apart from those of the writer
- `foreign_file`  the tables of a SQLite file that another program wrote
- `lock_holder`  the process that keeps the file locked, and what makes it give the lock back
- `lock_waits`  the pauses between the tries to get the lock
- `saved_copy`  the copy of a store whose file was removed or replaced
- `tables`  the tables of a store as plain rows
- `transaction`  named statements inside one transaction
"""
