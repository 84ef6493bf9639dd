"""``python -m fssgd`` is the command ``fssgd``."""

from fssgd.cli import main

if __name__ == "__main__":
    main()
