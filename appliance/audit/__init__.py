"""The audit table: rows of what was copied when, from committed facts, in files that Spark, DuckDB and pandas read.

- ``model``: rows, state and names of files, without IO
- ``reading``: the positions topic, and the rows that follow from what is new in it
- ``store``, ``hadoop``: the operations on files that the table needs; a folder of this host, or of an object store
- ``log``: the writes of the table, each claimed first
- ``writer``: writing the rows, beside the replicator's driver
- ``command``: queries by Spark SQL
"""
