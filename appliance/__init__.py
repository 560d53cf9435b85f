"""Secure cross-VPC tunnel and exactly-once Kafka replicator: what the image holds.

- ``runtime``: background tasks, child processes, ports, HTTP and logging; no word of Kafka or tunnels.
- ``settings``: the text of setenv.sh becomes frozen dataclasses, or one list of all its faults.
- ``tls``: the link's key, its certificates, and the proof in a client's first bytes.
- ``dns``: a query becomes an answer, a forward or a refusal.
- ``tunnel``: a connection becomes mutual TLS, a CONNECT to an allowed target, a relay of bytes.
- ``kafka``: the brokers' protocol: record batches, requests and answers, connections.
- ``link``: what a link is: names, positions, claims, the topics that remember them, the two clusters.
- ``gateway``: the process on each VM: the tunnel's server, or its client beside the DNS shim.
- ``replicator``: metadata and positions become a plan, lanes, transactions, committed copies.
- ``transform``: the link's SQL: its checks, and its plan over records.
- ``failover``: what clients need at the destination beside the copies: offsets of groups, records of MirrorMaker 2.
- ``status``: committed facts of both clusters become a snapshot: a table, JSON, health, metrics.
- ``console``: the control center: a page that shows the links of a VM, and commands for who has the token.
- ``verify``: both sides, read again, and a verdict on each partition.
- ``doctor``: every step of the path, tried from one VM, becomes a verdict and what to change.
- ``imports``: settings of MirrorMaker 2 and Confluent Replicator become links.
- ``adoption``: copies of MirrorMaker 2 become copies of a link, in place.
- ``audit``: committed positions become a table of what was copied when.
- ``client``: translated offsets for programs of others.
- ``cli``: the commands of ``bin/appliance``.
- ``errors``: the one taxonomy of errors.
- ``grouping``: pairs grouped by their keys.
- ``listing``: the first of a long list, and the number of the others.
- ``metrics``: the list of all metrics, with their labels and meanings.
- ``output``: the lines that commands print.
- ``program``: the command lines to print.
- ``tables``: tables at a terminal.
- ``timestamps``: times as text.
- ``version``: the release.

Who may import whom stands in docs/architecture.md, in the table that a test holds the code to.
"""
