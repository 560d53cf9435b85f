"""The control center: a page that shows the links of a VM, from committed facts; it needs no running replicator.

- ``model``: history, events, tables and the Connect documents; no IO.
- ``watch``: collects snapshots of this link.
- ``kept_history``: the file in which its charts and events outlive the control center.
- ``tunnel``: the tunnel's status, and whether the replicator answers.
- ``commands``: the operator's commands, in processes of their own.
- ``peer_centers``: the control centers of the VM's other links.
- ``pages``, ``templating``: the pages, and how they show states, numbers and times.
- ``server``, ``access``: their addresses, and who may see and send what.
- ``sessions``, ``login``: sessions of the page, and logins at a provider.
- ``serving``: the port, its TLS, and the socket.
- ``connect_routes``: Kafka Connect's REST interface.
- ``command``: ``appliance console``.

The folder ``templates`` has the pages, and ``assets`` what they load.
"""
