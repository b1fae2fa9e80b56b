"""The house keeps its promises about itself: the lock, the README's table, the words that are not committed."""

from __future__ import annotations

import ast
import doctest
import re
import subprocess
import tomllib
from dataclasses import fields
from importlib import import_module
from pathlib import Path

import pytest
from clusterd.config import Config
from clusterd_crawler.settings import PREFIX

ROOT = Path(__file__).resolve().parents[1]


def tracked() -> list[Path]:
    done = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True)
    return [ROOT / name for name in done.stdout.decode().split("\0") if name]


def test_lock_file_pins_with_hashes_and_names_no_host() -> None:
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    assert "://" not in lock
    assert lock.count("--hash=sha256:") > lock.count("==") > 50


def test_lock_file_holds_for_the_oldest_python_that_is_supported() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    oldest = project["requires-python"].removeprefix(">=")
    made_by = (ROOT / "requirements.lock").read_text(encoding="utf-8").split("\n")[1]
    assert f"--python-version {oldest} " in made_by


def test_nothing_names_the_host_of_a_registry() -> None:
    hosts = re.compile(r"(pypi\.org|pythonhosted|repo1?\.maven|registry\.npmjs|proxy\.golang)")
    for path in tracked():
        if path.is_file() and path != Path(__file__).resolve():
            assert not hosts.search(path.read_text(encoding="utf-8", errors="replace")), path


def test_top_level_holds_what_it_should() -> None:
    allowed = {
        "pyproject.toml", "crawler", "consumer", "clusterd", "tests", "deploy", "README.md", "LICENSE", "CHANGELOG.md",
        "CONTRIBUTING.md", "Makefile", "docs", "benchmarks", "requirements.lock",
    }  # fmt: skip
    found = {path.relative_to(ROOT).parts[0] for path in tracked()}
    assert {name for name in found if not name.startswith(".")} <= allowed


EXAMPLES = [
    path.relative_to(ROOT)
    for room in ("crawler", "consumer", "clusterd")
    for path in sorted((ROOT / room).rglob("*.py"))
    if ">>> " in path.read_text(encoding="utf-8")
]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_examples_in_docstrings_hold(path: Path) -> None:
    done = doctest.testmod(import_module(".".join(path.with_suffix("").parts[1:])))
    assert done.attempted > 0
    assert done.failed == 0


def test_docstrings_are_text_that_every_python_compiles() -> None:
    """Python 3.13.0 refuses a module whose docstring holds half of a surrogate pair."""
    for path in tracked():
        if path.suffix == ".py" and path.is_file():
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
                    (ast.get_docstring(node, clean=False) or "").encode()


def test_what_the_readme_links_to_is_in_the_source_distribution() -> None:
    build = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["hatch"]["build"]["targets"]
    targets = re.findall(r"\]\(([^):#\s]+)", (ROOT / "README.md").read_text(encoding="utf-8"))
    assert targets
    for target in targets:
        assert any(Path("/", target).match(pattern) for pattern in build["sdist"]["include"]), target


def test_readme_lists_every_setting_with_its_default() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for declared in fields(Config):
        if declared.name == "policies":
            assert all(f"`{policy.name}`" in readme for policy in declared.default)
            continue
        default = declared.default if declared.default != "" else ""
        shown = str(default).lower() if isinstance(default, bool) else str(default)
        row = f"| `{PREFIX}{declared.name.upper()}` | {f'`{shown}`' if shown else ''} |"
        assert row in readme, row
