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

has_pip() { "$1" -m pip --version >/dev/null 2>&1; }

if [ ! -x .tools/bin/uv ]; then
    # An environment that uv has made holds no pip; the Python that it was made of may.
    has_pip "$python" || python=$("$python" -c 'import sys; print(sys._base_executable)')
    has_pip "$python" || {
        echo "clusterd's set-up needs pip, which $python has not; install it (Debian: python3-pip, python3-venv) or name" \
            "another Python: make setup PYTHON=/usr/bin/python3" >&2
        exit 1
    }
    # uv into a folder of its own: pip refuses to touch the system's packages on Debian.
    "$python" -m pip install --quiet --disable-pip-version-check --target .tools uv
fi
[ -x "$venv/bin/python" ] || .tools/bin/uv venv --quiet --python "$python" "$venv"
.tools/bin/uv pip sync --quiet --python "$venv/bin/python" --require-hashes requirements.lock
.tools/bin/uv pip install --quiet --python "$venv/bin/python" --no-deps --no-build-isolation --editable .
"$venv/bin/python" crawler/build_core.py
