"""The encrypted way between the two VMs.

    connection -> mTLS -> CONNECT target -> relay

Files, in the order in which a connection meets them:

- ``listen``, ``strangers``, ``rate``: from a bound port to connections, and how many may come before they have proved
  themselves;
- ``link_key``: the key that both VMs derive from the shared secret;
- ``first_flight``, ``proof_check``: the proof in a client's first bytes, without IO; ``first_flight_reader``: a
  connection until they have come;
- ``identity``: who the two ends are to each other: certificates made from it (``certificates``) or read from files
  (``certificate_files``) and read again when those change (``renewal``);
- ``tls``: TLS as a function of bytes, without IO, its two directions ending separately;
- ``channel``: one connection as the rest of the room sees it; ``tcp_channel`` and ``tls_channel``: plain or with TLS;
- ``connect``: the client names its target, the server answers; without IO;
- ``access``: which targets and addresses may be dialled; pure;
- ``dial``: from an address to a channel; ``dialler``: the client's way to the server, directly or inside SSH (``ssh``);
- ``relay``: two channels become one way for bytes;
- ``targets``: allow-list, resolving, dialling and relay in one;
- ``breaker``: when the server is worth another try; pure;
- ``slots``, ``connections``: how many connections one end carries, and their tasks, drained, never orphaned;
- ``counters``: what one end has done, in numbers;
- ``descriptors``, ``timeouts``: what a process may run out of;
- ``server``, ``client``: the two ends, put together from the above.
"""
