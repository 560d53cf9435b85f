"""The two prepare scripts: they check setenv.sh, write a VM's files, and print the next steps.

- ``preparation``, ``checks``, ``vm``: every check, or every fault at once.
- ``writing``: files, whole or not at all, and their changes without secrets.
- ``compose_env``: the file .env, by which Compose finds them.
- ``report``: the output for the user.
- ``spark_package``: the package for spark-submit.
"""
