"""Secure cross-VPC tunnel and exactly-once Kafka replicator: what the image holds.

- ``console``: the control center: a page that shows the links of a VM, and commands for who has the right.
- ``commands``: what an operator does with a link: planned, shown, done, and done again after a kill.
- ``verify``: both sides, read again, and a verdict on each partition.
- ``doctor``: every step of the path, tried from one VM, becomes a verdict and what to change.
- ``migrate``: settings of MirrorMaker 2 and Confluent Replicator become links.
- ``driver``: the replicator: topics are found, lanes assigned to Spark's tasks, and services run beside them.
- ``status``: committed facts of both clusters become a snapshot: a table, JSON, health, metrics.
- ``groups``: what clients need at the destination beside the copies: offsets of groups, records of MirrorMaker 2.
- ``audit``: committed positions become a table of what was copied when.
- ``sql``: the link's SQL: its checks, its plan, and its records in flight.
- ``order``: one total order of a topic in several clusters.
- ``gateway``: the process on each VM: the tunnel's server, or its client beside the DNS shim.
- ``logs``: the logs of a source and its copy, read and compared.
- ``engine``: the lanes of a task become transactions of copies and positions.
- ``link``: what a link is: names, positions, claims, the topics that remember them, the two clusters.
- ``spark``: functions run in tasks; no word of lanes or SQL.
- ``tunnel``: a connection becomes mutual TLS, a CONNECT to an allowed target, a relay of bytes.
- ``kafka``: the brokers' protocol: record batches, requests and answers, connections.
- ``tls``: the link's key, its certificates, and the proof in a client's first bytes.
- ``dns``: a query becomes an answer, a forward or a refusal.
- ``runtime``: background tasks, child processes, ports, HTTP and logging; no word of Kafka or tunnels.
- ``settings``: the text of setenv.sh becomes frozen dataclasses, or one list of all its faults.
- ``client``: translated offsets for programs of others.
- ``cli``: the start of ``bin/appliance``, and what needs no package: help, the version, a mistyped command.
- ``command_line``: a command line becomes the run of a command.
- ``command_table``: the commands.
- ``replicate``: the command that copies.
- ``clock``: the time of day, and seconds that never go back.
- ``errors``: the one taxonomy of errors.
- ``grouping``: pairs grouped by their keys.
- ``listing``: the first of a long list, and the number of the others; the nearest name.
- ``metrics``: the list of all metrics, with their labels and meanings.
- ``output``: the lines that commands print.
- ``program``: the command lines to print.
- ``tables``: tables at a terminal.
- ``timestamps``: times as text.
- ``version``: the release.

The folder ``help`` has texts that are made of the table: help, completions, the page of man.

The folders stand on floors, from the page down to values: docs/why/architecture.md.
"""
