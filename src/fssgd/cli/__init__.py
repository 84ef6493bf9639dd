"""The command ``fssgd``: it parses, calls the library, and prints.

Only this module and its signals are imported without the extra; what needs typer is imported by :func:`main`.

- ``_app``: the commands; start reading here. ``_options``: arguments that they share.
- ``_fit``, ``_predict``, ``_diagnose``: a command each. ``_experiment``: the two that measure.
- ``_input``, ``_outputs``: files that are read, and checks of those that are written.
- ``_console``: errors, warnings and progress. ``_signals``: Ctrl-C, SIGTERM and SIGHUP.
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
