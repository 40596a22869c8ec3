"""The command `holdfast` as `python -m holdfast`; Python requires a module of this name."""

import sys

from holdfast.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
