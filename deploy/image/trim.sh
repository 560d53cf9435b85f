#!/bin/sh
# Removes Debian's packages and files with which nothing in the image runs. dpkg's list of the packages stays true.
set -eu

# Perl last: the others' scripts need it.
for packages in \
    "libpam-modules libpam-modules-bin libpam-runtime libpam0g login mount passwd util-linux" \
    "adduser apt debian-archive-keyring e2fsprogs gpgv libapt-pkg6.0 libaudit-common libaudit1 libcap-ng0 libdb5.3" \
    "libext2fs2 libgmp10 libgnutls30 libhogweed6 libidn2-0 libnettle8 libp11-kit0 libseccomp2 libsemanage-common" \
    "libsemanage2 libsepol2 libss2 libtasn1-6 libunistring2 libxxhash0 logsave" \
    perl-base; do
    # shellcheck disable=SC2086 # one word for each package
    DEBIAN_FRONTEND=noninteractive dpkg --purge --force-all $packages >/tmp/purged 2>&1 || { cat /tmp/purged; exit 1; }
done
rm /tmp/purged
rm -rf /usr/lib/*-linux-gnu/gconv /usr/lib/*-linux-gnu/perl-base
(cd /usr/lib/python3.* && rm -rf distutils ensurepip idlelib lib2to3 pydoc_data test tkinter unittest/test)
# Documents but licences, and what differs from build to build.
find /usr/share/doc -type f ! -name copyright -delete
rm -rf /usr/share/info/* /usr/share/locale/* /usr/share/man/* /var/cache/apt \
    /var/cache/debconf/* /var/lib/dpkg/info/*.shlibs /var/lib/dpkg/info/*.symbols /var/lib/dpkg/info/*.templates \
    /var/cache/ldconfig/aux-cache /var/lib/apt /var/lib/dpkg/*-old /var/log/* /etc/*-
