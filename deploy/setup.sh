#!/usr/bin/env bash
# Set up the environment: the pinned dependencies with their hashes, the packages in place, the compiled core.
# Usage: deploy/setup.sh PYTHON VENV
set -euo pipefail
cd "$(dirname "$0")/.."
python=$1
venv=$2

# First of all: an environment of an older Python would stay, and a later call with a newer one use it.
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11) and "clusterd needs Python 3.11 or later, and %s is %s; \
name another: make setup PYTHON=python3.12" % (sys.executable, sys.version.split()[0]))'

if [ ! -x .tools/bin/uv ]; then
    # uv into a folder of its own: pip refuses to touch the system's packages on Debian.
    "$python" -m pip install --quiet --disable-pip-version-check --target .tools uv
fi
[ -x "$venv/bin/python" ] || .tools/bin/uv venv --quiet --python "$python" "$venv"
.tools/bin/uv pip sync --quiet --python "$venv/bin/python" --require-hashes requirements.lock
.tools/bin/uv pip install --quiet --python "$venv/bin/python" --no-deps --no-build-isolation --editable .
"$venv/bin/python" crawler/build_core.py
