"""SSH as a carrier of the tunnel, if only port 22 of a bastion or of the source VM is open.

    connection -> channel of one SSH connection -> sshd of a bastion or of the source VM -> tunnel server

Inside each channel, the TLS, the identity and the CONNECT are the same as without SSH. So the SSH server sees only
ciphertext and cannot impersonate the source VM, and the source VM's end does not know about SSH.

- ``options``: algorithms, the key and the pinned host keys, when a dead server is noticed, and asyncssh's errors in the
  appliance's own words;
- ``transport``: a channel of an SSH connection as a transport of asyncio's, and the window of bytes it may have under
  way;
- ``carrier``: the one SSH connection, and the channels in it.

One SSH connection carries all: it costs one login, and is one line in the SSH server's log. The price is that a lost
packet holds up every broker's connection for a round trip; where the tunnel's port can be opened, do without SSH.

``asyncssh`` is imported in this package alone, and the package only where TUNNEL_SSH is set: its library takes longer
to load than all the rest.
"""
