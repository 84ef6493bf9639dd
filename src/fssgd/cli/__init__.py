"""The command ``fssgd``: it parses, calls the library, and prints.

Only this module is imported without the extra; what needs typer is imported by :func:`main`.
"""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command, or say what to install for it."""
    try:
        import typer  # noqa: F401
    except ImportError as error:
        sys.exit(f"The command fssgd needs a package that could not be imported ({error}): pip install 'fssgd[cli]'.")
    from fssgd.cli._app import app

    app(prog_name="fssgd")
