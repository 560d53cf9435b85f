"""``python -m deploy.materials SITE WHEELS LOCK PACKAGES RELEASE DEBIAN``: the bill of materials, to standard output.

SITE is the ``site-packages`` of the image. WHEELS is the folder of files from which it was installed by the lock file
LOCK. PACKAGES is a file with the output of ``dpkg-query`` in ``DPKG_FORMAT``. RELEASE is Debian's release number, and
DEBIAN the lock file of its packages.
"""

import sys
from pathlib import Path

from deploy.materials.bill import Materials, bill, debian_packages, java_libraries
from deploy.materials.python import python_packages


def main(site: str, wheels: str, lock: str, packages: str, release: str, debian: str) -> None:
    """Print the bill of materials."""
    materials = Materials(
        python=python_packages(Path(site), Path(wheels), Path(lock).read_text()),
        debian=debian_packages(Path(packages).read_text(), release, Path(debian).read_text()),
        java=java_libraries(Path(site, "pyspark", "jars")),
    )
    print(bill(materials))


if __name__ == "__main__":
    main(*sys.argv[1:])
