"""The control connections, by which the driver assigns lanes to tasks, and tasks report.

- ``assignment``: their messages; pure.
- ``server``, ``listener``, ``client``, ``connection``: the driver's end, its listener, a task's end, and their sockets.
"""
