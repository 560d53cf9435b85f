"""SSH as a carrier: the way to the tunnel server where only port 22 of a bastion, or of the source VM, is open.

    connection -> channel of one SSH connection -> sshd of a bastion or of the source VM -> tunnel server

Inside each channel runs what runs without SSH: the same TLS, the same identity, the same CONNECT. So the SSH server
sees ciphertext only, cannot stand in for the source VM, and the source VM's end knows nothing of SSH.

- ``options``: algorithms, the key and the pinned host keys, and when a dead server is noticed;
- ``errors``: asyncssh's errors in the appliance's own words;
- ``transport``: a channel of an SSH connection as a transport of asyncio's, and the window of bytes it may have under
  way;
- ``carrier``: the one SSH connection, and the channels in it.

One SSH connection carries all: it costs one login, and is one line in the SSH server's log. The price is that a lost
packet holds up every broker's connection for a round trip; where the tunnel's port can be opened, do without SSH.

``asyncssh`` is imported in this package alone, and the package only where TUNNEL_SSH is set: its library takes longer
to load than all the rest.
"""
