"""The encrypted connection between the two VMs.

    connection -> mTLS -> CONNECT target -> relay

- ``server``, ``client``, ``source_vm``: the two ends, and each source VM as the client reaches it.
- ``first_flight_reader``: a connection until its first bytes prove the secret.
- ``dialler``, ``broker_dialer``: the client's dial to the server and its CONNECT, the server's dial to the target.
- ``certificate_reload``: certificate files that change while connections stand.
- ``probe``, ``outage_log``: a step-by-step test of the tunnel, and one log line for each change of state.
- ``model``: CONNECT with its timeouts, and the allow-list; no IO.
- ``limits``: the numbers of connections, handshakes, descriptors and tries, and what was counted.
- ``stream``: connections as channels of bytes, and their relay.
- ``ssh``: SSH as a carrier.
"""
