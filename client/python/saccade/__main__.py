"""`python -m saccade COMMAND`: the commands of this package, where its console scripts are not in PATH."""

from __future__ import annotations

import sys


def main() -> int:
    name = sys.argv[1] if len(sys.argv) > 1 else ""
    if name == "bulk":
        from saccade.bulk.command import main as command
    elif name == "evaluate":
        from saccade.evaluate.command import main as command
    else:
        print(f"saccade: unknown command {name!r}; expected bulk or evaluate", file=sys.stderr)
        return 2
    return command(sys.argv[2:])


if __name__ == "__main__":
    sys.exit(main())
