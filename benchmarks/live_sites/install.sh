#!/usr/bin/env bash
# Debian's packages of the web applications that `python -m benchmarks live_sites` serves on loopback.
set -euo pipefail
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
apt-get install -y -qq --no-install-recommends apache2-bin apache2-doc mercurial dokuwiki php-cli php-xml php-mbstring
