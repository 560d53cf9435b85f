"""Settings of other programs as links of ours; no IO.

- ``properties``: the file's keys and values, as Java reads them, and the regular expressions in them.
- ``verdict``: rules for keys, and their outcomes.
- ``link``: the variables of a link, and its setenv.sh.
- ``jaas``, ``clients``: values and keys that both programs share.
- ``mirror_maker``, ``mirror_maker_keys``: MirrorMaker 2.
- ``confluent_replicator``: Confluent Replicator.
"""
