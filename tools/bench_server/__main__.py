"""Measures the running daemon and writes docs/benchmarks/server.md."""

import argparse
import pathlib
import sys
import tempfile

from tools.bench_server.bench import Bench
from tools.bench_server.load import Load
from tools.bench_server.page import Page
from tools.bench_server.parts import PARTS
from tools.bench_server.servers import Peers

ROOT = pathlib.Path(__file__).resolve().parents[2]


def main():
    parser = argparse.ArgumentParser(prog="./dev bench server", description=__doc__)
    parser.add_argument("--seconds", type=float, default=3, help="duration of each candidate's measurement in each row (default 3)")
    parser.add_argument("--rounds", type=int, default=3, help="number of rounds in which the candidates take turns (default 3)")
    parser.add_argument("--part", choices=PARTS, action="append", help="measure only this part; may be repeated")
    parser.add_argument("--markdown", type=pathlib.Path, help="the file to write")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "release", help=argparse.SUPPRESS)
    parser.add_argument("--peers", type=pathlib.Path, default=pathlib.Path("none"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    build = arguments.build.resolve()
    page = Page()
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(page, Load(build / "bin" / "saccade_bench_load"), build, Peers(arguments.peers),
                      pathlib.Path(folder), arguments.seconds, arguments.rounds)
        for name in arguments.part or PARTS:
            PARTS[name](bench)
    page.table("What was to be reached", ["", "asked", "measured", "reached"], page.goals)
    page.parts.pop()
    if arguments.markdown:
        flags = [f"--seconds {arguments.seconds:g}", f"--rounds {arguments.rounds}",
                 *(f"--part {name}" for name in arguments.part or []), f"--markdown {arguments.markdown}"]
        arguments.markdown.write_text(page.text(" ".join(["./dev bench server", *flags]), ROOT))
    return 0


if __name__ == "__main__":
    sys.exit(main())
