#!/usr/bin/env bash
# Everything that must pass: the built wheel once, in an environment of its own, then the tests on real servers.
set -euo pipefail
cd "$(dirname "$0")/.."

deploy/check_wheel.sh
# Tests that kill servers and crawl for real depend on the machine's pace: one that fails is tried once more, and the
# summary counts it as rerun. What is wrong fails twice.
exec .venv/bin/pytest -q --durations=15 --reruns 1 --reruns-delay 2 "$@" tests
