#!/usr/bin/env bash
# Debian's packages of the web applications that `python -m benchmarks live_sites` serves on loopback.
set -euo pipefail
there() {
    command -v apache2 && command -v hg && command -v php && ls -d /usr/share/dokuwiki /usr/share/doc/apache2-doc/manual
}
if there >/dev/null 2>&1; then
    exit 0
fi
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
apt-get install -y -qq --no-install-recommends apache2-bin apache2-doc mercurial dokuwiki php-cli php-xml php-mbstring
