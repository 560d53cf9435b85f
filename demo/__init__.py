"""The demo: the whole appliance between two real clusters on this machine.

- ``scenario``: the order of events.
- ``running_link``, ``appliances``, ``setenv``: the link and its processes.
- ``input``, ``producing``, ``producer``: the topics and records at the source.
- ``arrivals``, ``latency``, ``verification``: measurements and the comparison.
- ``display``, ``report``: progress, hints and the result.
- ``order_scenario``: with ``--global``, the order of events in three clusters with one total order.
- ``running_order``, ``order_setenv``, ``order_producing``, ``order_verification``, ``order_report``: the same of it.
"""
