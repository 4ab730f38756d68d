"""The group of commands, and the one place where errors become one line and an exit code."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Final

import click

if TYPE_CHECKING:
    from collections.abc import Sequence

#: The commands in the order in which a newcomer needs them; each lives in the module of its name.
COMMANDS: Final = ("demo", "report", "boundaries", "plan", "pack", "verify", "completion")

DATA_PROBLEM: Final = 1
USAGE: Final = 2
INTERRUPTED: Final = 130


class Commands(click.Group):
    """A group whose commands are imported when they are asked for, in an order that teaches."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 (click's signature)
        """Return the names of the commands."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Import and return a command, or nothing where there is none of that name."""
        if cmd_name not in COMMANDS:
            return None
        command = getattr(import_module(f"lengthwise.cli.{cmd_name}"), cmd_name)
        assert isinstance(command, click.Command)  # noqa: S101 (for the type checker)
        return command


def _version(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:  # noqa: FBT001 (click's signature)
    if wanted:
        from lengthwise import __version__

        click.echo(f"lengthwise {__version__}")
        ctx.exit()


@click.group(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Start with: lengthwise demo. Then: lengthwise report DATASET.",
)
@click.option("--version", is_flag=True, is_eager=True, expose_value=False, callback=_version, help="Show the version.")
def lengthwise() -> None:
    """Turn variable-length samples into batches, from the lengths alone.

    DATASET is whatever holds your samples: a folder written by save_to_disk, Arrow or Parquet files, a file of
    lengths. Only the lengths are read, never a token.
    """


def run(arguments: Sequence[str]) -> int:
    """Run a command and return its exit code; a problem with data or usage is one line on standard error."""
    from lengthwise._core import LengthwiseError

    try:
        code = lengthwise.main(list(arguments), prog_name="lengthwise", standalone_mode=False)
        sys.stdout.flush()
    except click.exceptions.Exit as leave:
        code = leave.exit_code
    except BrokenPipeError:
        code = _reader_left()
    except click.ClickException as error:
        code = _complain(_usage(error), USAGE if isinstance(error, click.UsageError) else DATA_PROBLEM)
    except (LengthwiseError, OSError, ModuleNotFoundError) as error:
        code = _complain(_one_line(error), DATA_PROBLEM)
    except (KeyboardInterrupt, click.Abort):
        code = _complain("interrupted", INTERRUPTED)
    return code if isinstance(code, int) else 0


def _usage(error: click.ClickException) -> str:
    message = " ".join(error.format_message().split()).rstrip(".")
    context = error.ctx if isinstance(error, click.UsageError) else None
    return f"{message}; see {context.command_path} --help" if context else message


def _one_line(error: BaseException) -> str:
    if isinstance(error, OSError) and error.filename and error.strerror:
        return f"{error.filename}: {error.strerror}"
    return " ".join(str(error).split()) or type(error).__name__


def _complain(message: str, code: int) -> int:
    click.echo(f"{click.style('lengthwise:', fg='red', bold=True)} {message}", err=True)
    return code


def _reader_left() -> int:
    """Leave quietly when `| head` closed the pipe, without the interpreter's own complaint at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0
