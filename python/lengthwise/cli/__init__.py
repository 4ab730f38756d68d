"""The command line: `lengthwise report`, `boundaries`, `plan`, `pack`, `verify`, `demo`.

Exit codes: 0 all is well; 1 the data cannot be used, or a verification failed; 2 the command was called wrongly.
Results go to standard output and progress to standard error, in colour and with progress only on a terminal.
"""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line and leave the process with its exit code."""
    try:
        import click  # noqa: F401
    except ModuleNotFoundError:
        sys.stderr.write("lengthwise: the command line needs two more packages: pip install 'lengthwise[cli]'\n")
        sys.exit(2)
    from lengthwise.cli.app import run

    sys.exit(run(sys.argv[1:]))
