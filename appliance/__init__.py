"""Secure cross-VPC tunnel and exactly-once Kafka replicator.

The way of the data, room by room; arrows of imports point only leftwards::

    errors <- settings <- listening <- { render, http, endless, tunnel, dns, kafka } <- { gateway, replicator }
        <- { verify, console, doctor } <- { cli, prepare } <- demo

- ``settings``: the text of setenv.sh becomes frozen dataclasses, or one list of all its faults.
- ``render``: the settings become the files of a VM, docker-compose.yml among them, and its firewall rules.
- ``materials``: what is installed in the image becomes its bill of materials.
- ``listening``: a port that cannot be had becomes one line that names what to change.
- ``http``: a few pages that are read with GET: health and metrics.
- ``endless``: work that goes on beside other work, whatever goes wrong in it.
- ``tunnel``: a connection becomes mutual TLS, a CONNECT to an allowed target, a relay of bytes.
- ``dns``: a query becomes an answer, a forward or a refusal.
- ``kafka``: the brokers' protocol: requests, connections, record batches.
- ``gateway``: what runs on each VM: the tunnel's server end, or its client end beside the DNS shim.
- ``replicator``: metadata and positions become a plan, lanes, transactions, committed copies.
- ``console``: what both clusters have committed becomes a snapshot: a table, JSON, health, metrics.
- ``verify``: both sides, read anew, become a verdict on each partition.
- ``prepare``: the two prepare scripts: checks, writes what was rendered, says what is left to do.
- ``doctor``: every step of the path, tried from one VM, becomes a verdict and what to change.
- ``demo``: two real clusters on loopback and the whole appliance between them.
"""
