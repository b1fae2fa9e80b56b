"""What deploy/ holds is accepted by the tools that will read it: compose, Docker, systemd."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
BIN = Path(sys.executable).parent


def run(*command: str | Path) -> str:
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_compose_file_keeps_the_compose_schema() -> None:
    run(BIN / "check-jsonschema", "--builtin-schema", "vendor.compose-spec", DEPLOY / "docker" / "compose.yaml")


def test_a_wrong_compose_file_would_be_refused(tmp_path: Path) -> None:
    wrong = tmp_path / "compose.yaml"
    wrong.write_text("services:\n  redis:\n    imagge: redis\n", encoding="utf-8")
    command = [BIN / "check-jsonschema", "--builtin-schema", "vendor.compose-spec", wrong]
    assert subprocess.run(command, capture_output=True, check=False).returncode != 0


def test_files_that_compose_mounts_exist() -> None:
    compose = yaml.safe_load((DEPLOY / "docker" / "compose.yaml").read_text(encoding="utf-8"))
    mounted = [
        volume.split(":")[0] for service in compose["services"].values() for volume in service.get("volumes", [])
    ]
    for source in mounted:
        if source.startswith("."):
            assert (DEPLOY / "docker" / source).exists(), source


def test_dockerfile_passes_hadolint() -> None:
    run(BIN / "hadolint", DEPLOY / "docker" / "Dockerfile")


def copied_into_the_image() -> list[Path]:
    lines = (DEPLOY / "docker" / "Dockerfile").read_text(encoding="utf-8").splitlines()
    copies = [line.split()[1:-1] for line in lines if line.startswith("COPY ") and "--from" not in line]
    return sorted({ROOT / source for sources in copies for source in sources})


def test_files_that_the_dockerfile_copies_exist() -> None:
    for source in copied_into_the_image():
        assert source.exists(), source


def test_the_wheel_of_the_image_holds_no_core_of_another_python(tmp_path: Path) -> None:
    # What was compiled in the clone is copied, too, and .gitignore, which would keep it out, is not.
    for source in copied_into_the_image():
        (shutil.copytree if source.is_dir() else shutil.copy)(source, tmp_path / source.name)
    for core in tmp_path.rglob("*.so"):
        core.unlink()
    other = tmp_path / "crawler/clusterd_crawler/core/_core.cpython-310-x86_64-linux-gnu.so"
    other.touch()
    run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", tmp_path / "dist", tmp_path)
    assert list(tmp_path.rglob("*.so")) == [other]  # who builds it may not be allowed to write there
    names = zipfile.ZipFile(next((tmp_path / "dist").glob("*.whl"))).namelist()
    compiled = [name for name in names if name.endswith(".so")]
    assert compiled == [name for name in compiled if name.endswith(sysconfig.get_config_var("EXT_SUFFIX"))]


def test_the_cores_are_compiled_by_the_compiler_that_the_environment_names() -> None:
    command = [sys.executable, ROOT / "crawler" / "build_core.py"]
    done = subprocess.run(command, env={**os.environ, "CC": "false"}, capture_output=True, text=True, check=True)
    assert done.stdout == ""
    assert done.stderr.count("not compiled, NumPy is used instead") == 5


def test_setup_says_that_a_python_is_too_old(tmp_path: Path) -> None:
    older = tmp_path / "python3"
    older.write_text(f'#!/bin/sh\nexec {sys.executable} -c "import sys; sys.version_info = (3, 10); $2"\n')
    older.chmod(0o755)
    command = [DEPLOY / "setup.sh", older, tmp_path / "venv"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("clusterd needs Python 3.11 or later, and ")
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "venv").exists()


def test_setup_in_an_environment_without_pip_takes_that_of_its_python(tmp_path: Path) -> None:
    """As within one that uv has made; where that has none, it is said what to do."""
    (tmp_path / "deploy").mkdir()
    setup = shutil.copy(DEPLOY / "setup.sh", tmp_path / "deploy")
    base = tmp_path / "base"
    without = tmp_path / "python3"
    without.write_text(
        f'#!/bin/sh\ncase "$*" in *_base_executable*) echo {base} ;; *pip*) exit 1 ;; esac\n', encoding="utf-8"
    )
    base.write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/asked\ntest "$3" = --version\n', encoding="utf-8")
    for script in (without, base):
        script.chmod(0o755)
    command = [setup, without, tmp_path / "venv"]
    assert subprocess.run(command, capture_output=True, check=False).returncode == 1
    first, then = (tmp_path / "asked").read_text(encoding="utf-8").splitlines()
    assert first == "-m pip --version"
    assert then.startswith("-m pip install ")
    shutil.copy(without, base)
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith(f"clusterd's set-up needs pip, which {base} has not; ")


def test_the_image_reads_the_file_that_it_names() -> None:
    text = (DEPLOY / "docker" / "Dockerfile").read_text(encoding="utf-8")
    assert "a file mounted at /etc/clusterd.toml" in text
    assert "touch /etc/clusterd.toml" in text  # where none is mounted
    commands = [
        json.loads(line[line.index("[") :]) for line in text.splitlines() if " CMD [" in line or line[:5] == "CMD ["
    ]
    assert len(commands) == 2
    for command in commands:
        assert command[-2:] == ["--config", "/etc/clusterd.toml"], command


def test_both_brokers_serve_a_group_alike() -> None:
    compose = yaml.safe_load((DEPLOY / "docker" / "compose.yaml").read_text(encoding="utf-8"))
    given = compose["services"]["kafka"]["environment"]
    lines = (DEPLOY / "kafka" / "server.properties").read_text(encoding="utf-8").splitlines()
    group = dict(line.split("=", 1) for line in lines if line.startswith("group."))
    assert group
    for name, value in group.items():
        assert given["KAFKA_" + name.upper().replace(".", "_")] == value, name


@pytest.mark.parametrize("unit", sorted(path.name for path in (DEPLOY / "systemd").glob("*.service")))
def test_systemd_accepts_the_unit(unit: str, tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        assert not os.environ.get("CI"), "systemd-analyze is missing in CI"
        pytest.skip("systemd-analyze is not on this machine")
    # verify wants the programs to exist; ours are looked for where they are now.
    text = (DEPLOY / "systemd" / unit).read_text(encoding="utf-8")
    text = text.replace("/opt/clusterd/venv/bin/clusterd", str(BIN / "clusterd")).replace("/usr/bin/java", "/bin/true")
    copy = tmp_path / unit.replace("@", "@1")
    copy.write_text(text, encoding="utf-8")
    run("systemd-analyze", "verify", "--recursive-errors=no", "--man=no", copy)
