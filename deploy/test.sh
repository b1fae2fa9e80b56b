#!/usr/bin/env bash
# Everything that must pass: the built wheel once, in an environment of its own, then the tests on real servers, by four
# processes, each with a Redis of its own (1 GB each; they wait so much that two keep two processors half idle, and three
# do not keep them busy), beside one Kafka broker that they share.
set -euo pipefail
cd "$(dirname "$0")/.."

# Tests start hundreds of processes: with the setting of some containers each would compile all that it imports, two
# seconds for a crawl and two for its daemon.
unset PYTHONDONTWRITEBYTECODE

deploy/check_wheel.sh
# Where no broker can be had it says why, and its tests say so again.
exec .venv/bin/python -m tests.services.kafka_broker .venv/bin/pytest -q -n 4 -r fER --durations=15 "$@" tests
