#!/usr/bin/env bash
# Build the wheel that would be published and use it from a fresh environment: as a crawl host without Redis client
# and learner's extras, and as a daemon without Scrapy.
set -euo pipefail
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
uv=$PWD/.tools/bin/uv
python=$PWD/.venv/bin/python

"$python" -m build --wheel --no-isolation --outdir "$work/dist" . >"$work/build.log" 2>&1 || {
    cat "$work/build.log"
    exit 1
}
wheel=$(echo "$work"/dist/clusterd-*.whl)
# Versions from the lock, so that what is tested is what is pinned.
sed -e 's/ *\\$//' -e '/^ *--hash/d' requirements.lock >"$work/constraints.txt"

fresh() { # NAME EXTRAS: an environment with only the wheel and those extras
    "$uv" venv --quiet --python "$python" "$work/$1"
    "$uv" pip install --quiet --python "$work/$1/bin/python" --constraint "$work/constraints.txt" "clusterd[$2] @ file://$wheel"
}

fresh crawl scrapy,kafka
"$work/crawl/bin/python" -I deploy/check_crawl_host.py
# The oldest Scrapy that pyproject.toml allows has all that the add-on calls, too, and the oldest parser reads alike.
scrapy=$(sed -n 's/^scrapy = \["scrapy>=\(.*\)"\]$/\1/p' pyproject.toml)
selectolax=$(sed -n 's/^ *"selectolax>=\([0-9.]*\),.*/\1/p' pyproject.toml)
"$uv" pip install --quiet --python "$work/crawl/bin/python" "scrapy==$scrapy.*" "selectolax==$selectolax"
"$work/crawl/bin/python" -I deploy/check_crawl_host.py
fresh daemon daemon
"$work/daemon/bin/python" -I deploy/check_daemon_host.py "$work/daemon/bin/clusterd"
echo "wheel: $(basename "$wheel") works on a crawl host and on a daemon host"
