#!/bin/sh
# debian.sh PACKAGE...: installs Debian packages, unless they are there, in the versions of the lock.
#
# A mirror has only the newest version of a package. If that is another one, it is installed, and a line says so. With
# SNAPSHOT=yes the packages come from Debian's archive of the lock's day, which has all of them.
set -eu

lock=${LOCK:-/opt/debian/requirements-debian.lock}
dpkg --status "$@" >/dev/null 2>&1 && exit
if [ "${SNAPSHOT:-}" ]; then
    day=$(sed -n 's/^# snapshot //p' "$lock")
    rm -rf /etc/apt/sources.list /etc/apt/sources.list.d/*
    for part in "debian bookworm" "debian bookworm-updates" "debian-security bookworm-security"; do
        echo "deb [check-valid-until=no] http://snapshot.debian.org/archive/${part% *}/$day ${part#* } main"
    done >/etc/apt/sources.list
fi
architecture=$(dpkg --print-architecture)
# A pin that no mirror can satisfy is no error.
sed -n "s/^\([^=#]*\)=\([^ ]*\) $architecture .*/Package: \1\nPin: version \2\nPin-Priority: 1001\n/p" "$lock" \
    >/etc/apt/preferences.d/locked
mkdir -p /usr/share/man/man1
apt-get update -qq
DEBIAN_FRONTEND=noninteractive
export DEBIAN_FRONTEND
apt-get install -qq --yes --no-install-recommends --download-only "$@" >/dev/null
newer=
for file in /var/cache/apt/archives/*.deb; do
    package=$(dpkg-deb --show --showformat='${Package}=${Version}' "$file")
    digest=$(sha256sum "$file" | cut -d ' ' -f 1)
    wanted=$(sed -n "s/^$package $architecture //p" "$lock")
    if [ -z "$wanted" ]; then
        newer="$newer $package"
    elif [ "$wanted" != "$digest" ]; then
        echo "$package is not the file of the lock: its SHA-256 is $digest" >&2
        exit 1
    fi
done
apt-get install -qq --yes --no-install-recommends "$@" >/dev/null
[ -z "$newer" ] || echo "not as in the lock, which the mirror no longer has (--build-arg SNAPSHOT=yes gets it):$newer" >&2
rm /etc/apt/preferences.d/locked
# What differs from build to build.
rm -rf /var/lib/apt/lists/* /var/cache/apt/* /var/cache/ldconfig/aux-cache /var/log/apt /var/log/*.log \
    /var/cache/debconf/*-old /var/lib/dpkg/*-old /etc/*-
