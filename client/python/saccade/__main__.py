"""`python -m saccade COMMAND`: the commands of this package. Each imports only what it needs."""

from __future__ import annotations

import sys

COMMANDS = ("bulk", "evaluate", "import", "prove", "replay", "verify")


def main() -> int:
    name = sys.argv[1] if len(sys.argv) > 1 else ""
    if name == "bulk":
        from saccade.bulk.command import main as bulk

        return bulk(sys.argv[2:])
    if name == "evaluate":
        from saccade.evaluate.command import main as evaluate

        return evaluate(sys.argv[2:])
    if name == "prove":
        from saccade.prove.command import main as prove

        return prove(sys.argv[2:])
    if name == "replay":
        from saccade.replay.command import main as replay

        return replay(sys.argv[2:])
    if name in ("import", "verify"):
        from saccade.imports.command import main as imports

        return imports(sys.argv[1:])
    said = f"unknown command {name!r}" if name else "no command"
    print(f"saccade: {said}; expected one of {', '.join(COMMANDS)}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
