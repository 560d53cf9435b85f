"""Patches the process that starts, before anything else is imported; see ``tests.faults.injection.switches``."""

from tests.faults.injection import crashes, hosts, mutations

crashes.patch()
hosts.patch()
mutations.patch()
