"""``bin/appliance support-bundle``: what support needs, in one file without secrets.

- ``command``: the command and what it prints.
- ``parts``: the programs whose output goes into the bundle, with Compose and without.
- ``program``: running one of them, bounded in time and size.
- ``logs``: the last hour of a log; no IO.
- ``versions``: the versions of this machine, or of a container.
- ``secrets``: the secrets that the settings hold, and the settings without them.
- ``masking``: leaving secrets out of texts, in whatever form they are there; no IO.
- ``archive``: the file, whole or not at all.

It runs in the small environment of the prepare scripts, and is not in the image.
"""
