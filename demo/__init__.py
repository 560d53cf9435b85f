"""The demo: the whole appliance between two real clusters on this machine.

- ``scenario``: the order of events.
- ``running_link``, ``appliances``, ``setenv``: the link and its processes.
- ``input``, ``topics``, ``producing``, ``producer``: the records at the source.
- ``arrivals``, ``latency``, ``verification``: what is measured and compared.
- ``display``, ``report``, ``hints``: what the user sees.
"""
