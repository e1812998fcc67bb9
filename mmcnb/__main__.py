"""Entry point of the command ``mmcnb`` and of ``python -m mmcnb``.

SIGINT and SIGTERM stop the command cleanly, even while modules are being imported.
"""

import signal
import sys


def run() -> int:
    """Run the command line of this process, and return the exit code."""
    try:
        if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
            signal.signal(signal.SIGTERM, signal.default_int_handler)
        from mmcnb.cli import main

        return main()
    except KeyboardInterrupt:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)
        print(
            "mmcnb: stopped by the user; nothing half-written was left behind.",
            file=sys.stderr,
        )
        return 130


if __name__ == "__main__":
    sys.exit(run())
