"""The table of commands, what all of them share, and how an error leaves the process.

The options of every command (``--data``, ``--json``, …) may stand anywhere on the line: they are moved to the front
before the line is parsed, so that no command needs to know of them.
"""

from __future__ import annotations

import errno
import os
import sys
import traceback
from difflib import get_close_matches
from importlib import import_module
from typing import Final

import click
from clusterd_crawler.errors import ClusterdError, WrongInput

from clusterd.cli import lacking
from clusterd.cli.invocation import Invocation
from clusterd.cli.parameters import Place
from clusterd.cli.printing import printable
from clusterd.whole_file import NO_ROOM

#: Command → the module that holds it, and its line in ``clusterd --help``.
COMMANDS: Final[dict[str, tuple[str, str]]] = {
    "run": ("run", "Run the daemon: sketches in, alerts and rules out."),
    "ingest": ("ingest", "Bring in pages: WARC, JSON lines, folders of HTML."),
    "clusters": ("clusters", "List the clusters of near-duplicate pages."),
    "cluster": ("clusters", "Show the cluster of one page: its alternatives."),
    "policy": ("clusters", "List the cluster policies, add or remove one."),
    "similar": ("similar", "Find the pages that resemble a page, a file or a text."),
    "holders": ("similar", "Find the sites that carry a text, whole or in part."),
    "compare": ("similar", "Compare two pages, files or texts."),
    "group": ("similar", "Fold a list of URLs: one line for each group of alike pages."),
    "pairs": ("pairs", "Find all pairs of alike documents in a file."),
    "batch": ("pairs", "Work on a whole file at once, without the store."),
    "find-lost": ("sweeps", "Find where the lost pages of a site have moved."),
    "changes": ("sweeps", "Tell how the pages changed from sweep to sweep."),
    "alerts": ("alerts", "Read the alerts: what joined, left, merged, split."),
    "rules": ("rules", "List, explain, retire, exchange and replay URL rules."),
    "skips": ("skips", "List the requests that were skipped, and why."),
    "unskip": ("skips", "Have skipped URLs fetched again."),
    "status": ("status", "Count what is in the store."),
}

#: Options of every command: name → whether a value follows.
SHARED: Final = {
    "--data": True,
    "--redis": True,
    "--kafka": True,
    "--config": True,
    "--json": False,
    "--debug": False,
}

#: What the system says where it, or a container, allows no more, and what Python says of threads. (By the words: a full
#: pipe that must not be waited for has the number of a process too many, EAGAIN, too.)
AT_LIMIT: Final = frozenset(
    {"can't start new thread", *map(os.strerror, (errno.EMFILE, errno.ENFILE, errno.EAGAIN, errno.ENOMEM))}
)
#: What Redis says after the error of a function of ours.
OF_FUNCTION: Final = "script: clusterd_"
#: What Python says where files can be put in no folder for temporary ones.
NO_TEMPORARY: Final = "No usable temporary directory"

SHARED_HELP: Final = f"Also the options of every command: {', '.join(SHARED)} (see clusterd --help)."


def hoist(arguments: list[str]) -> list[str]:
    """Move the options of every command to the front of the line; what follows ``--`` stays as it is.

    One that lacks its value raises here: moved to the front, it would take the command for it.
    """
    front: list[str] = []
    rest: list[str] = []
    queue = list(arguments)
    while queue:
        word = queue.pop(0)
        if word == "--":
            rest += [word, *queue]
            break
        name, equals, _ = word.partition("=")
        if name not in SHARED:
            rest.append(word)
            continue
        front.append(word)
        if SHARED[name] and not equals:
            if not queue:
                raise click.BadParameter(f"Option {name!r} requires an argument.")
            front.append(queue.pop(0))
    return front + rest


class Commands(click.Group):
    """A group that imports a command's module when the command is called."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Take the options of every command wherever they stand; one that a shell completes has no value yet."""
        given = args[:-1] if ctx.resilient_parsing and args and SHARED.get(args[-1]) else args
        return super().parse_args(ctx, hoist(given))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Name the nearest command where the given one does not exist."""
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            near = get_close_matches(args[0], COMMANDS, n=1)
            hint = f"did you mean {near[0]}?" if near else f"the commands are {', '.join(COMMANDS)}"
            raise click.BadParameter(f"there is no command {args[0]!r}; {hint}")
        return super().resolve_command(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the commands in the order of the work."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the module of a command and return the click command of that name."""
        if cmd_name not in COMMANDS:
            return None
        module = import_module(f"clusterd.cli.{COMMANDS[cmd_name][0]}")
        found = [v for v in vars(module).values() if isinstance(v, click.Command) and v.name == cmd_name]
        for command in found:
            _tell_shared(command)
        return found[0] if found else None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the table of commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in COMMANDS.items()])


def _tell_shared(command: click.Command) -> None:
    """Name the options of every command below the help of one, and of those within it."""
    if SHARED_HELP not in (command.epilog or ""):
        command.epilog = f"{SHARED_HELP}\n\n{command.epilog or ''}"
    if isinstance(command, click.Group):
        for inner in command.commands.values():
            _tell_shared(inner)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(package_name="clusterd", prog_name="clusterd")
@click.option(
    "--data",
    metavar="DIR",
    type=Place(),
    help="Folder of the embedded store (default .clusterd, of a Scrapy project in its folder).",
)
@click.option(
    "--redis", metavar="URL", help="Use this Redis: redis://HOST:PORT, redis+cluster://…, redis+sentinel://…."
)
@click.option("--kafka", metavar="SERVERS", help="Use this Kafka: HOST:PORT[,HOST:PORT…], kafkas://….")
@click.option("--config", metavar="FILE", type=Place(), help="Settings from a TOML file, named as in Scrapy.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line on standard output, nothing else there.")
@click.option("--debug", is_flag=True, help="Log more, and show where an error came from.")
@click.pass_context
def clusterd(
    ctx: click.Context,
    data: str | None,
    redis: str | None,
    kafka: str | None,
    config: str | None,
    as_json: bool,
    debug: bool,
) -> None:
    """Near-duplicate pages of a live crawl: clusters, questions about them, and the URL rules learned from them.

    The options of every command may stand before or after it. Nothing has to be running: without --redis and --kafka
    all is kept in the folder --data.
    """
    chosen = {"data": data, "redis": redis, "kafka": kafka}
    given = {name: value for name, value in chosen.items() if value is not None}
    ctx.obj = Invocation(given, config, json=as_json, debug=debug)


def run(arguments: list[str]) -> int:
    """Run one command line; return the exit status, having said on standard error what went wrong."""
    debug = "--debug" in arguments
    try:
        result = clusterd.main(args=arguments, prog_name="clusterd", standalone_mode=False)
        sys.stdout.flush()
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except click.exceptions.NoArgsIsHelpError as error:
        if isinstance(group := error.ctx.command, click.Group) and error.ctx.parent is not None:
            which = ", ".join(group.list_commands(error.ctx))
            return _say(f"{error.ctx.info_name}: lacks its command; give one of {which}", 2)
        print(error.format_message(), file=sys.stderr)
        return 2
    except click.ClickException as error:
        return _say(_one_line(error), 2)
    except (KeyboardInterrupt, click.Abort):
        return _say("stopped", 1)
    except BrokenPipeError:
        _drop_output()
        return 1
    except ClusterdError as error:
        if debug:
            traceback.print_exc()
        return _say(str(error), 2 if isinstance(error, WrongInput) else 1)
    except Exception as error:
        if debug:
            traceback.print_exc()
        return _say_of_system(error, arguments)
    return result if isinstance(result, int) else 0


def _say_of_system(error: Exception, arguments: list[str]) -> int:
    """Say what the system does not let us do, or that the fault is ours."""
    if isinstance(error, ModuleNotFoundError) and not (error.name or "").startswith("clusterd"):
        return _say(lacking(error), 1)
    from clusterd_crawler.urls import is_text

    if isinstance(error, UnicodeEncodeError) and (given := next((a for a in arguments if not is_text(a)), "")):
        return _say(f"{given}: holds bytes that are no UTF-8, as no name in the store does", 2)
    if isinstance(error, OSError) and error.errno in NO_ROOM:
        try:
            sys.stdout.flush()
        except OSError:
            _drop_output()
        place = error.filename or "the output, or files in TMPDIR"
        return _say(f"{place}: {error.strerror}; make room there", 1)
    if isinstance(error, FileNotFoundError) and NO_TEMPORARY in str(error):
        return _say(f"{error.strerror}; let TMPDIR name a folder that may be written to and has room", 1)
    if isinstance(error, FileNotFoundError) and _folder_is_gone():
        return _say("the working folder is gone, or has been made anew; go into it once more, or to another (cd)", 1)
    if isinstance(error, MemoryError) or getattr(error, "strerror", str(error)) in AT_LIMIT:
        what = str(error) or "no memory is left"
        return _say(f"{what}; allow more memory, processes or open files (ulimit -a, the container's limits)", 1)
    if OF_FUNCTION in str(error):
        lacks = "the store lacks keys, which somebody has deleted, or another program writes under its prefix"
        return _say(f"{lacks}; else this is a fault of clusterd, --debug shows where ({error})", 1)
    return _say(f"{type(error).__name__}: {error} (a fault of clusterd; --debug shows where)", 1)


def _folder_is_gone() -> bool:
    try:
        os.getcwd()
    except FileNotFoundError:
        return True
    return False


def _drop_output() -> None:
    """Drop what standard output has not taken: the interpreter would try once more as it ends, and say so."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _one_line(error: click.ClickException) -> str:
    if isinstance(error, click.BadParameter) and error.param is None and error.param_hint is None:
        return error.message
    message = error.format_message()
    if isinstance(error, click.UsageError) and error.ctx is not None:
        usage = error.ctx.get_usage().removeprefix("Usage: ")
        message = f"{message}{'' if message.endswith(('.', '?')) else '.'} Usage: {usage}"
    return message


def _say(message: str, status: int) -> int:
    print(f"clusterd: {printable(' '.join(message.split()))}", file=sys.stderr)
    return status
