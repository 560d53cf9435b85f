"""The parts that every process needs, independent of Kafka and of the tunnel.

- ``background``: tasks beside the main one, which end nothing else when they fail; work cut off by a stop or deadline.
- ``child_process``: programs that the kernel ends with the process that started them.
- ``command``: a command of ``bin/appliance``, as its room declares it.
- ``bind``: the error of an unavailable port, as one line that names the setting to change; sockets' short names.
- ``confinement``: limits that a process with secrets sets itself at its start.
- ``http``: a small server for pages that are read with GET.
- ``journal``: log records for systemd's journal, with their fields.
- ``local_pages``: the pages of the VM's other processes, asked.
- ``log``: one line for each log record, for people or for machines.
"""
