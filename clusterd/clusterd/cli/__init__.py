"""The command line: ``clusterd COMMAND …``. What each command takes and prints is told in its own module.

A command is a click command in the module that `commands.COMMANDS` names; it is imported when it is called, so that
``clusterd --help`` costs no import of Redis, Kafka or NumPy. A command takes the `invocation.Invocation` with
``@click.pass_obj``: the settings, the opened services, and how to print.
"""

from __future__ import annotations

import io
import os
import signal
import sys
import threading
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and end the process: 0 done, 1 could not, 2 wrong input."""
    try:
        from clusterd.cli.commands import run
    except ModuleNotFoundError as error:  # a crawl host has the wheel and not what the commands need
        sys.exit(f"clusterd: {lacking(error)}")
    except KeyboardInterrupt:
        sys.exit("clusterd: stopped")
    _end_in_order()
    _open_what_is_closed()
    if isinstance(sys.stdin, io.TextIOWrapper):  # UTF-8 whatever the locale, as files are
        sys.stdin.reconfigure(encoding="utf-8-sig", errors="surrogateescape")
    if isinstance(sys.stdout, io.TextIOWrapper):  # so is what is printed: JSON, tables, and the help, which has an "…"
        sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace")
    sys.exit(run(list(sys.argv[1:] if arguments is None else arguments)))


def lacking(error: ModuleNotFoundError) -> str:
    """Return what is said where a package is missing that commands need."""
    package = (error.name or str(error)).partition(".")[0]
    return f"{package} is not installed here; the commands need pip install 'clusterd[daemon]'"


def _open_what_is_closed() -> None:
    """Let a standard stream that was closed (``2>&-``) lead nowhere: the store's socket would be given its number."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free
            setattr(sys, name, os.fdopen(number, "w" if number else "r", encoding="utf-8"))


def _end_in_order() -> None:
    """Take SIGTERM, and SIGHUP of a terminal that closes, as Ctrl-C: else the embedded store would run on for nobody.

    Where they are ignored (nohup) they stay so.
    """
    if threading.current_thread() is not threading.main_thread():
        return
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _as_interrupt)


def _as_interrupt(number: int, frame: object) -> None:
    interrupted = signal.getsignal(signal.SIGINT)
    if not callable(interrupted):  # ignored, as behind ``… &`` in a script: this signal is not
        raise KeyboardInterrupt
    interrupted(signal.SIGINT, None)
