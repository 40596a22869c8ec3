"""Writer: one transaction for each group of operations.

Import order: dry_run → caller_transaction → writer → expected_statements, locks, phases.

- `caller_transaction`  operations inside a transaction of the application
- `dry_run`  operations in a transaction that is rolled back
- `expected_statements`  what is sent with completions, because it mostly follows from them
- `locks`  the rows that a group locks before it reads any
- `phases`  the operations of each phase, in their order, with their handlers
- `writer`  the one writer, which carries out the phases of each group
"""
