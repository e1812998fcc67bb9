"""``python -m mmcnb`` is ``mmcnb``."""

import sys

from mmcnb.cli import main

if __name__ == "__main__":
    sys.exit(main())
