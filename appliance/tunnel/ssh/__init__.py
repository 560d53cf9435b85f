"""The other transport: the tunnel as an SSH connection, for networks in which a bastion's port 22 is all that is open.

    connection -> SSH, a key pair at each end -> direct-tcpip target -> relay

- ``keys``: who the two ends are to each other: Ed25519 pairs made from the shared secret, or given as files;
- ``options``: SSH as the appliance speaks it: algorithms, what is switched off, when a dead peer is noticed;
- ``channel``: one share of an SSH connection as the rest of the room sees it;
- ``errors``: what asyncssh says, in the appliance's own words;
- ``route``: from the settings to an SSH connection, through a bastion where one is named;
- ``peer``: who may log in to the source's end, and what else is asked of it;
- ``server``, ``client``: the two ends. Either can also stand opposite of an OpenSSH that was there before.

One SSH connection carries all: it costs one handshake and is one line in a bastion's log. The price is that its bytes
stand in one queue: a lost packet holds up every broker's connection for a round trip, and all of them share one TCP
connection's pace. Several connections would mend that and cost more handshakes, and a bastion's limits; where the port
is open, the TLS transport is the one to choose: a connection for each, at half of the processor time.

``asyncssh`` is imported in this package alone, and the package only where TUNNEL_TRANSPORT is ssh.
"""
