#!/usr/bin/env bash
# Everything that must pass: the built wheel once, in an environment of its own, then the tests on real servers, by four
# processes, each with servers of its own (1 GB each; they wait so much that two keep two processors half idle, and three
# do not keep them busy).
set -euo pipefail
cd "$(dirname "$0")/.."

# Tests start hundreds of processes: with the setting of some containers each would compile all that it imports, two
# seconds for a crawl and two for its daemon.
unset PYTHONDONTWRITEBYTECODE

deploy/check_wheel.sh
# Before the tests, each of which has its time: a slow network may take longer.
.venv/bin/python -m tests.services.kafka_broker || true  # it has said why, and its tests say so again
exec .venv/bin/pytest -q -n 4 -r fER --durations=15 "$@" tests
