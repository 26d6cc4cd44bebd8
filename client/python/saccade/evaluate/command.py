"""The command saccade-evaluate, which `saccade evaluate` runs."""

from __future__ import annotations

import argparse
import pathlib
import sys

from saccade.console import Teller, address, bounded, run_resumable, token_of
from saccade.evaluate import report
from saccade.evaluate.dataset import Options
from saccade.evaluate.job import DATASETS, Evaluation, Progress, Result, run


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="saccade evaluate",
        description="Sends a data set's pictures to a running daemon, and computes the task's figures by their standard "
        "definitions, beside those of the model's paper. An evaluation that was interrupted goes on when the same command "
        "is given again.",
        epilog="Exit codes: 0 every sample was evaluated, 1 some have no answer or the evaluation could not be finished, "
        "2 usage.",
    )
    add = parser.add_argument
    add("folder", type=pathlib.Path, metavar="DIR", help="folder of the data set, in its own layout")
    add("--dataset", required=True, choices=sorted(DATASETS), help="which data set it is")
    add("--model", required=True, help="name of the model")
    add("--model-version", type=bounded(int, 0, 2**31 - 1), default=0, help="0 is the newest that is ready")
    add("-o", "--output", type=pathlib.Path,
        help="folder for answers.jsonl, result.md and result.json (default evaluated/DATASET-MODEL)")
    add("--split", help="part of the data set, as its folder or list names it (default: its usual one)")
    add("--variant", help="sceneflow: finalpass or cleanpass; care: one condition")
    add("--frames-per-second", type=bounded(float, 0.1, 1000), default=25.0,
        help="thumos14: rate of the frames in the folder `frames` (default 25)")
    add("--limit", type=bounded(int, 0, 2**31 - 1), default=0, help="evaluate the first samples only; 0 is all")
    add("--priority", type=bounded(int, -100, 100), default=-100,
        help="of the requests; the default gives way to everything else")
    add("--timeout", type=bounded(float, 0.1, 86400),
        help="seconds for one request (default 300; for clips and volumes 3600)")
    where = parser.add_argument_group("daemon")
    where.add_argument("--url", type=address(), default="127.0.0.1:8001", metavar="HOST:PORT",
                       help="gRPC address of a daemon or service (default 127.0.0.1:8001)")
    where.add_argument("--token-file", help="file with the token that is sent")
    where.add_argument("--tls", action="store_true", help="connect with TLS")
    where.add_argument("--max-in-flight", type=bounded(int, 1, 1024), default=16,
                       help="most requests that are sent and not answered")
    where.add_argument("--patience-seconds", type=bounded(float, 1, 86400), default=600.0,
                       help="how long to wait for a daemon that answers nothing")
    return parser


def _evaluation(given: argparse.Namespace) -> Evaluation:
    output = given.output or pathlib.Path("evaluated") / f"{given.dataset}-{given.model.replace('/', '_')}"
    timeout = given.timeout or (3600.0 if given.dataset in ("thumos14", "care") else 300.0)
    options = Options(given.split, given.variant, given.frames_per_second, given.priority, timeout)
    return Evaluation(
        dataset=given.dataset, folder=given.folder, output=output, model=given.model, version=given.model_version,
        url=given.url, options=options, limit=given.limit, max_in_flight=given.max_in_flight,
        patience_seconds=given.patience_seconds, token=token_of(given.token_file), tls=given.tls or None,
    )


def _line(progress: Progress) -> str:
    rate = (progress.done - progress.before) / max(progress.seconds, 1e-9)
    left = (progress.samples - progress.done) / rate if rate > 0 else 0
    return f"{progress.done:,} of {progress.samples:,} samples, {rate:,.1f}/s, {left:,.0f} s left"


def _run(given: argparse.Namespace, teller: Teller) -> tuple[Result, str]:
    evaluation = _evaluation(given)
    result = run(evaluation, lambda progress: teller.tell(_line(progress), progress.seconds))
    return result, report.write(evaluation, result)


def main(arguments: list[str] | None = None) -> int:
    given = _parser().parse_args(arguments)
    done = run_resumable("evaluate", lambda teller: _run(given, teller))
    if done is None:
        return 1
    result, text = done
    print(text, end="")
    if result.resumed:
        print(f"saccade evaluate: {result.resumed:,} samples were evaluated by an earlier run", file=sys.stderr)
    if result.failures:
        print(f"saccade evaluate: {len(result.failures):,} samples have no answer, such as {result.failures[0].key}: "
              f"{result.failures[0].error}; the same command tries them again", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
