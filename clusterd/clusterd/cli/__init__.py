"""The command line: ``clusterd COMMAND …``. What each command takes and prints is told in its own module.

A command is a click command in the module that `commands.COMMANDS` names; it is imported when it is called, so that
``clusterd --help`` costs no import of Redis, Kafka or NumPy. A command takes the `invocation.Invocation` with
``@click.pass_obj``: the settings, the opened services, and how to print.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and end the process: 0 done, 1 could not, 2 wrong input."""
    from clusterd.cli.commands import run

    sys.exit(run(list(sys.argv[1:] if arguments is None else arguments)))
