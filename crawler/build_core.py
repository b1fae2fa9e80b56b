"""Compile the C cores when a wheel is built or the project is set up.

Every ``_*.c`` beside the Python sources becomes an extension module of the same name. The cores are
optional: without a compiler the wheel is pure Python and the NumPy code gives the same results, slower.

Run as a program (``python crawler/build_core.py``) it compiles in place, for an editable checkout.
"""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("crawler/clusterd_crawler/core", "consumer/clusterd_consumer/core", "clusterd/clusterd/clusters/redis")


def compile_cores(root: Path = ROOT, into: Path = ROOT) -> list[Path]:
    """Compile each core into its package folder below ``into``; return the shared objects that were made."""
    sources = sorted(path for package in PACKAGES for path in (root / package).glob("_*.c"))
    targets = [_compile(source, into / source.parent.relative_to(root)) for source in sources]
    return [target for target in targets if target is not None]


def _compile(source: Path, folder: Path) -> Path | None:
    """Compile one C file; None, with a line on standard error, where there is no working compiler."""
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / (source.stem + sysconfig.get_config_var("EXT_SUFFIX"))
    # As setuptools does: a Python that was built elsewhere names the compiler that was there.
    compiler = (os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc").split()
    include = sysconfig.get_paths()["include"]
    flags = [
        "-O3",
        "-fPIC",
        "-shared",
        "-fvisibility=hidden",
        "-std=c11",
        "-ffp-contract=off",
        "-Wall",
        "-Wextra",
        f"-I{include}",
    ]
    flags += os.environ.get("CFLAGS", "").split()
    command = [*compiler, *flags, str(source), "-o", str(target), "-lm"]
    try:
        subprocess.run(command, check=True, capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError) as error:
        reason = getattr(error, "stderr", "") or str(error)
        print(f"clusterd: {source.name} not compiled, NumPy is used instead: {reason.strip()}", file=sys.stderr)
        return None
    return target


try:
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface
except ImportError:  # run as a program, outside a build
    pass
else:

    class CompileCores(BuildHookInterface[Any]):
        """Hatchling's hook: a wheel with a compiled core is tied to its platform and Python."""

        PLUGIN_NAME = "custom"

        def initialize(self, version: str, build_data: dict[str, Any]) -> None:
            """Compile before the wheel's files are gathered; apart from the sources, which may be another user's."""
            if version == "editable":
                compile_cores(Path(self.root), Path(self.root))
                return
            self._made = TemporaryDirectory(prefix="clusterd-cores-")  # until the build has ended
            made = compile_cores(Path(self.root), Path(self._made.name))
            if not made:
                return
            build_data["pure_python"] = False
            build_data["infer_tag"] = True
            for target in made:
                # Hatchling takes the room's folder off, as it does for the sources.
                build_data["force_include"][str(target)] = target.relative_to(self._made.name).as_posix()


if __name__ == "__main__":
    for path in compile_cores():
        print(path.relative_to(ROOT))
