"""`python -m scheduler` and the console script `soloist`."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line; never returns."""
    from scheduler.cli.failures import run  # noqa: PLC0415 - late: an import of this module stays cheap

    sys.exit(run())


if __name__ == "__main__":
    main()
