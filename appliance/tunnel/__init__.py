"""The encrypted way between the two VMs.

    connection -> mTLS -> CONNECT target -> relay

Files, in the order in which a connection meets them:

- ``identity``: who the two ends are to each other: certificates made from the shared secret;
- ``tls``: TLS as a function of bytes, without IO, its two directions ending separately;
- ``channel``: one connection as the rest of the room sees it; ``tcp_channel`` and ``tls_channel``: plain or with TLS;
- ``connect``: the client names its target, the server answers; without IO;
- ``access``: which targets and addresses may be dialled; pure;
- ``dial``, ``listen``: from an address to a channel, and from a bound port to channels;
- ``relay``: two channels become one way for bytes;
- ``targets``: the three of them together, the same for every transport;
- ``breaker``: when the server is worth another try; pure;
- ``connections``: the tasks of one end, drained, never orphaned;
- ``tally``: what one end has done, in numbers;
- ``server``, ``client``: the two ends, put together from the above.
"""
