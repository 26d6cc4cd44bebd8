"""The command saccade-bulk, which `saccade bulk` runs."""

from __future__ import annotations

import argparse
import os
import shutil
import sys

from saccade.bulk.daemons import command as daemon_command
from saccade.bulk.engines import ENGINES, Service
from saccade.bulk.failures import BulkError
from saccade.bulk.job import Job, Progress, Report, run
from saccade.bulk.plan import Question
from saccade.bulk.sources import Columns
from saccade.bulk.worker import Limits
from saccade.console import address, bounded, run_resumable, token_of


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="saccade bulk",
        description="Sends all inputs through a model, and writes one row per input. A job that was interrupted goes "
        "on when the same command is given again.",
        epilog="Exit codes: 0 every input has a row, 1 the job could not be finished, 2 usage.",
    )
    add = parser.add_argument
    add("inputs", nargs="+", metavar="INPUT",
        help="folder of pictures, clips, .tar (WebDataset) and .parquet files; such a file; .txt with a path per line")
    add("-o", "--output", required=True, help="folder for Parquet files, or a .json file for detections as COCO")
    add("--model", required=True, help="name of the model")
    add("--model-version", type=bounded(int, 0, 2**31 - 1), default=0, help="0 is the newest that is ready")
    add("--score-threshold", type=bounded(float, 0, 1), help="leave out results with a lower score or probability; for classification, detection and actions")
    add("--top-k", type=bounded(int, 0, 1000), default=0, help="most results per input; 0 is the model's own bound; for classification, detection and actions")
    add("--no-masks", action="store_true", help="leave masks out")
    add("--priority", type=bounded(int, -100, 100), default=-100,
        help="of the requests; the default gives way to everything else")
    add("--timeout", type=bounded(float, 0.1, 3600), default=60.0, help="seconds for one request")
    where = parser.add_argument_group("daemons")
    where.add_argument("--url", type=address(), action="append", default=[], metavar="HOST:PORT",
                       help="gRPC address of a daemon or service; may be repeated (default 127.0.0.1:8001)")
    where.add_argument("--token-file", help="file with the token that is sent")
    where.add_argument("--tls", action="store_true", help="connect with TLS")
    where.add_argument("--model-repository", help="start a daemon on every machine, with the models in this folder")
    where.add_argument("--saccaded", default="saccaded", help="the daemon's program (default: the one in PATH)")
    where.add_argument("--saccaded-flag", action="append", default=[], metavar="FLAG",
                       help="flag for the daemons that are started, as --saccaded-flag=--cores=4; may be repeated")
    how = parser.add_argument_group("engine")
    how.add_argument("--on", choices=sorted(ENGINES), default="local", help="where the job runs (default local)")
    how.add_argument("--engine-address", help="address of the Ray cluster, or Spark's master")
    how.add_argument("--shard-items", type=bounded(int, 1, 100_000), default=256,
                     help="inputs in one part of the output")
    how.add_argument("--max-in-flight", type=bounded(int, 1, 1024), default=64,
                     help="most requests that one worker has sent and that are not answered")
    how.add_argument("--patience-seconds", type=bounded(float, 1, 86400), default=600.0,
                     help="how long to wait for a daemon that answers nothing")
    parquet = parser.add_argument_group("Parquet")
    parquet.add_argument("--column", help="column with the encoded pictures (default: the only column of bytes)")
    parquet.add_argument("--key-column", help="column with the inputs' names (default: file and row number)")
    return parser


def _service(given: argparse.Namespace) -> Service:
    if given.model_repository is None:
        if given.saccaded_flag:
            raise BulkError("--saccaded-flag is for daemons that are started; add --model-repository")
        urls = tuple(given.url) or ("127.0.0.1:8001",)
        return Service(addresses=urls, token=token_of(given.token_file), tls=given.tls or None)
    if given.token_file or given.tls:
        raise BulkError("--token-file and --tls are for running daemons; leave them out, or name a daemon with --url")
    if given.url:
        raise BulkError("--url and --model-repository exclude each other: use running daemons, or start some")
    if given.on == "local" and shutil.which(given.saccaded) is None:
        raise BulkError(f"{given.saccaded} is not a program; name it with --saccaded")
    if not os.path.isdir(given.model_repository):
        raise BulkError(f"--model-repository {given.model_repository} is not a folder")
    command = daemon_command(given.saccaded, given.model_repository, given.saccaded_flag)
    return Service(command=tuple(command))


def _job(given: argparse.Namespace) -> Job:
    if given.engine_address and given.on == "local":
        raise BulkError("--engine-address is for clusters; add --on ray or --on spark")
    question = Question(
        model=given.model, version=given.model_version, score_threshold=given.score_threshold, top_k=given.top_k,
        masks=not given.no_masks, priority=given.priority, timeout=given.timeout,
    )
    return Job(
        inputs=given.inputs, output=given.output, question=question, service=_service(given), engine=given.on,
        engine_options={"address": given.engine_address} if given.engine_address else {},
        shard_items=given.shard_items, columns=Columns(given.column, given.key_column),
        limits=Limits(given.max_in_flight, given.patience_seconds),
    )


def _clock(seconds: float) -> str:
    return f"{int(seconds) // 3600}:{int(seconds) // 60 % 60:02}:{int(seconds) % 60:02}"


def _line(progress: Progress) -> str:
    rate = (progress.done - progress.before) / progress.seconds
    left = f", {_clock((progress.inputs - progress.done) / rate)} left" if rate > 0 else ""
    share = 100 * progress.done / progress.inputs
    return f"{progress.done:,} of {progress.inputs:,} inputs ({share:.0f} %), {rate:,.1f}/s{left}"


def _tell(given: argparse.Namespace, report: Report) -> None:
    resumed = f", {report.resumed:,} of them by an earlier run" if report.resumed else ""
    print(f"{report.inputs:,} inputs in {_clock(report.seconds)}{resumed}: {given.output}")
    if report.failed:
        print(f"{report.failed:,} have no result; their rows say why in error_code and error")


def main(arguments: list[str] | None = None) -> int:
    given = _parser().parse_args(arguments)
    report = run_resumable("bulk", lambda teller: run(_job(given), lambda so_far: teller.tell(_line(so_far), so_far.seconds)))
    if report is None:
        return 1
    _tell(given, report)
    return 0


if __name__ == "__main__":
    sys.exit(main())
