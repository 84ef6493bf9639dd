"""The command ``fssgd``: it parses, calls the library, and prints.

Only this module and its signals are imported without the extra; what needs typer is imported by :func:`main`.
"""

from __future__ import annotations

import sys

from fssgd.cli._signals import leave_if_ended, take_signals


def main() -> None:
    """Run the command, or say what to install for it."""
    take_signals()
    try:
        import typer  # noqa: F401
    except ImportError as error:
        sys.exit(f"The command fssgd needs a package that could not be imported ({error}): pip install 'fssgd[cli]'.")
    from fssgd.cli._app import app

    try:
        app(prog_name="fssgd")
    except SystemExit as end:
        leave_if_ended(end.code)
        raise
