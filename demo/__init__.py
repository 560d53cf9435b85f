"""Two real clusters on loopback and the whole appliance between them.

- ``jars``, ``java``, ``rehearsal`` and ``installation``: Kafka itself, fetched once and made quick to start.
- ``plan``: what a cluster is; ``ports``, ``certificates``, ``properties`` and ``layout`` make files of it.
- ``process``: programs that never outlive us.
- ``broker`` and ``cluster``: the plan, running; ``client``: how to reach it.
- ``vpc_dns``, ``setenv`` and ``appliances``: the source's own network, and the link's processes; ``stage``: all of it.
- ``input``, ``topics``, ``outlet`` and ``producing``: what is produced, and how.
- ``arrivals`` and ``latency``: what is measured while it is copied.
- ``reading``, ``fingerprint``, ``comparison`` and ``verification``: both sides, record by record.
- ``scenario``: the order of events; ``display``, ``report`` and ``keeping``: what the user sees; ``tasks``: owned work.
"""
