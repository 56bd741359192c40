"""``python -m powersketch``: the command line."""

import sys

from powersketch.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
