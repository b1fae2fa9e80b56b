"""What a shell is told when it completes a line: commands, options, and that files stand in the place of files."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

CLUSTERD = str(Path(sys.executable).parent / "clusterd")


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        ("ru", "plain,run\nplain,rules\n"),
        ("--data x rules re", "plain,replay\nplain,retire\n"),
        ("pairs --thr", "plain,--threshold\n"),
        ("ingest pag", "file,pag\n"),
        ("batch cluster pag", "file,pag\n"),
        ("similar pag", "file,pag\n"),
        ("rules replay a.tsv b", "file,b\n"),
        ("ingest --data pag", "file,pag\n"),
        ("--config pag", "file,pag\n"),
    ],
)
def test_a_shell_completes_commands_options_and_files(line: str, answer: str) -> None:
    words = {
        "COMP_WORDS": f"clusterd {line}",
        "COMP_CWORD": str(len(line.split())),
        "_CLUSTERD_COMPLETE": "bash_complete",
    }
    done = subprocess.run([CLUSTERD], env=os.environ | words, capture_output=True, timeout=60, check=True)
    assert (done.stdout.decode(), done.stderr) == (answer, b"")
