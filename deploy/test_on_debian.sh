#!/usr/bin/env bash
# What CI runs, on another Debian with its own Python, Java and Redis, of which nothing is installed yet: as root, where
# debootstrap is installed, deploy/test_on_debian.sh trixie. What is committed is tested. Takes 2 GB in TMPDIR.
set -euo pipefail
cd "$(dirname "$0")/.."
suite=${1:?which Debian: bookworm, trixie, forky or another suite}
root=$(mktemp -d)
chmod 755 "$root"
trap 'rm -rf --one-file-system "$root"' EXIT

debootstrap --variant=minbase "$suite" "$root"
git clone --quiet . "$root/clusterd"
cp /etc/resolv.conf /etc/hosts "$root/etc/"
# Authorities that this machine was given to reach its mirrors; a mirror may be some weeks old.
cp -r /usr/local/share/ca-certificates "$root/usr/local/share/"
echo 'Acquire::Check-Valid-Until "false";' >"$root/etc/apt/apt.conf.d/99-old-mirror"

# Mounts of a namespace of its own end with it.
unshare --mount -- bash -euc '
    for folder in proc sys dev; do mount --rbind "/$folder" "$1/$folder"; done
    exec chroot "$1" env -i HOME=/root LANG=C.UTF-8 PATH=/usr/sbin:/usr/bin:/sbin:/bin \
        SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt bash -euc "
        apt-get update -qq
        apt-get install -y -qq --no-install-recommends ca-certificates git >/dev/null
        update-ca-certificates >/dev/null
        bash /clusterd/.ci/run"
' - "$root"
