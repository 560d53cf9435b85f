"""The parts that every process needs; no word of Kafka or tunnels.

- ``background``: tasks beside the main one, which end nothing else when they fail.
- ``child_process``: programs that the kernel ends with the process that started them.
- ``command``: a command of ``bin/appliance``, as its room declares it.
- ``bind``: a port that cannot be had becomes one line that names what to change.
- ``http``: a small server for pages that are read with GET.
- ``log``: one line for each log record, for people or for machines.
"""
