"""``python -m workbench``: the command line."""

import sys

from workbench.cli import main

sys.exit(main())
