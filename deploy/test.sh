#!/usr/bin/env bash
# Everything that must pass: the built wheel once, in an environment of its own, then the tests on real servers.
set -euo pipefail
cd "$(dirname "$0")/.."

deploy/check_wheel.sh
exec .venv/bin/pytest -q --durations=15 "$@" tests
