"""``python -m testbed.kubernetes``: fetch and build a node's programs, if this machine does not have them yet."""

from testbed.kubernetes.pause import pause_image
from testbed.kubernetes.programs import components, coredns
from testbed.kubernetes.tools import clients

for made in (clients, pause_image, components, coredns):
    print(made())
