"""``appliance import``: the settings of MirrorMaker 2 and of Confluent Replicator as links.

- ``command``: the options, what is printed, and the links' folders, each written whole or not at all.
- ``model``: the translation of each key.
"""
