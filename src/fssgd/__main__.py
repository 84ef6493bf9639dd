"""``python -m fssgd`` is the command ``fssgd``."""

from fssgd.cli import main

main()
