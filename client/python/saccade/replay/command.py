"""The command `saccade replay`."""

from __future__ import annotations

import argparse
import json
import math
import pathlib
import sys

from saccade.bulk.failures import BulkError
from saccade.console import Teller, address, bounded, token_of
from saccade.replay import page, report
from saccade.replay.failures import ReplayError
from saccade.replay.job import Job, Progress, Result, run
from saccade.replay.target import Target


def _speed(text: str) -> float:
    if text == "max":
        return math.inf
    try:
        speed = float(text.removesuffix("x"))
    except ValueError:
        speed = 0.0
    if not 0.001 <= speed <= 1000:
        raise argparse.ArgumentTypeError(f"is {text}; expected max, or a factor such as 1x or 2.5")
    return speed


def _expect(text: str) -> float | None:
    """None is exact."""
    if text == "exact":
        return None
    try:
        bound = float(text)
    except ValueError:
        bound = -1.0
    if not 0 <= bound < math.inf:
        raise argparse.ArgumentTypeError(f"is {text}; expected exact, or a number of 0 or more")
    return bound


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="saccade replay",
        description="Sends the calls that a daemon has captured (saccaded --capture) to a daemon again, at their times or "
        "as fast as it answers, and compares the answers.",
        epilog="Exit codes: 0 every answer is as expected, 1 some differ or the replay could not be finished, 2 usage.",
    )
    add = parser.add_argument
    add("folder", type=pathlib.Path, metavar="DIR", help="folder of the capture")
    add("--speed", type=_speed, default=1.0, metavar="1x|max|N",
        help="the capture's own speed (1x, the default), so many times it, or as fast as the daemon answers (max)")
    add("--expect", type=_expect, default=argparse.SUPPRESS, metavar="exact|TOLERANCE",
        help="exact: the answers are bit for bit the same; a number: they differ at most so far by the task's measure. By "
        "default exact where weights, precision and instruction set are the same, else the task's own tolerance")
    add("--model", action="append", default=[], metavar="NAME", help="only calls of this model; may be repeated")
    add("--max-in-flight", type=bounded(int, 1, 1024), default=32, help="most calls that are sent and not answered (32)")
    add("--patience-seconds", type=bounded(float, 0, 86400), default=60.0,
        help="how long a call that is rejected for the daemon's load is sent again (60)")
    add("--timeout", type=bounded(float, 0.1, 86400), default=300.0, help="seconds for one call (300)")
    add("-o", "--output", type=pathlib.Path, default=pathlib.Path("replayed"), metavar="DIR",
        help="folder for report.html and report.json (default replayed)")
    where = parser.add_argument_group("daemon")
    where.add_argument("--url", type=address(), default="127.0.0.1:8001", metavar="HOST:PORT", help="gRPC address (127.0.0.1:8001)")
    where.add_argument("--http-url", type=address(), metavar="HOST:PORT",
                       help="HTTP address, for calls that came over HTTP (default: port 8000 of the same host)")
    where.add_argument("--token-file", help="file with the token that is sent")
    where.add_argument("--tls", action="store_true", help="connect with TLS")
    return parser


def _line(progress: Progress) -> str:
    rate = progress.done / max(progress.seconds, 1e-9)
    return f"{progress.done:,} of {progress.calls:,} calls, {rate:,.1f}/s, {progress.different:,} differ"


def _write(output: pathlib.Path, result: Result, job: Job, address: str) -> None:
    document = report.document(result, job, address)
    try:
        output.mkdir(parents=True, exist_ok=True)
        # Pictures of clients may be in them.
        for name, text in (("report.json", json.dumps(document, indent=1) + "\n"), ("report.html", page.html(result, document))):
            path = output / name
            path.touch(mode=0o600)
            path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ReplayError(f"the report cannot be written to {output}: {error.strerror}; name another folder with -o") from None


def _run(given: argparse.Namespace, teller: Teller) -> tuple[Result, str]:
    expect = getattr(given, "expect", -1.0)
    job = Job(
        folder=given.folder, speed=given.speed, exact=expect is None, expect=None if expect in (None, -1.0) else expect,
        models=frozenset(given.model), max_in_flight=given.max_in_flight, patience_seconds=given.patience_seconds,
    )
    target = Target(given.url, given.http_url, token_of(given.token_file), given.tls, given.timeout)
    try:
        result = run(job, target, lambda progress: teller.tell(_line(progress), progress.seconds))
    finally:
        target.close()
    _write(given.output, result, job, given.url)
    return result, report.text(result)


def main(arguments: list[str] | None = None) -> int:
    given = _parser().parse_args(arguments)
    teller = Teller()
    try:
        result, text = _run(given, teller)
    except BulkError as error:
        teller.end()
        print(f"saccade replay: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        teller.end()
        print("saccade replay: interrupted; nothing was written", file=sys.stderr)
        return 1
    teller.end()
    print(text, end="")
    for damage in result.damages:
        print(f"saccade replay: {damage}", file=sys.stderr)
    print(f"saccade replay: the report is {given.output / 'report.html'}", file=sys.stderr)
    return 1 if result.total.different else 0


if __name__ == "__main__":
    sys.exit(main())
