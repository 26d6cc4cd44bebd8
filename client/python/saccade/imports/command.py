"""The commands saccade-import and saccade-verify, which `saccade import` and `saccade verify` run."""

from __future__ import annotations

import argparse
import dataclasses
import pathlib
import sys

from saccade.console import address, bounded
from saccade.imports.failures import ImportFailure


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="saccade", epilog="Exit codes: 0 done, 1 failed or beyond a tolerance, 2 usage."
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    into = commands.add_parser("import", help="write a network of PyTorch's libraries as a model's folder")
    into.add_argument("source", metavar="SOURCE",
                      help="torchvision:NAME, timm:NAME, transformers:FOLDER, or a file .pt, .pt2 or .onnx with --description")
    into.add_argument("-o", "--output", required=True, type=pathlib.Path, metavar="DIR",
                      help="the model's folder; its last part is the model's name")
    into.add_argument("--weights", metavar="NAME", help="torchvision's name of the weights (default DEFAULT)")
    into.add_argument("--random", type=int, metavar="SEED", help="random weights in place of trained ones, for trials")
    into.add_argument("--description", type=pathlib.Path, metavar="FILE", help="the saccade.json of a file")
    into.add_argument("--labels", type=pathlib.Path, metavar="FILE", help="names of the classes, one a line")
    into.add_argument("--run", action="store_true",
                      help="run the code of a file .pt or .pt2, to see whether it takes more than one picture")
    into.add_argument("--overwrite", action="store_true", help="replace what DIR holds")
    verify = commands.add_parser("verify", help="compare a served model with its author's Python")
    verify.add_argument("model", type=pathlib.Path, metavar="DIR", help="a folder that import wrote, but not from a file")
    verify.add_argument("--pictures", required=True, type=pathlib.Path, metavar="FOLDER", help="pictures to compare with")
    verify.add_argument("--url", type=address(advice=""), metavar="HOST:PORT",
                        help="gRPC address of a daemon that serves the model; without it one is started")
    verify.add_argument("--saccaded", default="saccaded", help="the daemon's program (default: the one in PATH)")
    verify.add_argument("--saccaded-flag", action="append", default=[], metavar="FLAG", help="flag for it; may be repeated")
    verify.add_argument("--start-seconds", type=bounded(float, 1, 3600), default=120.0, help="how long to wait for it")
    verify.add_argument("--json", action="store_true", help="print the differences as JSON")
    from saccade.imports.comparing import Tolerance

    for one in dataclasses.fields(Tolerance):
        verify.add_argument(f"--{one.name}-tolerance", type=bounded(float, 0, 1e6), default=one.default)
    return parser


def _import(given: argparse.Namespace) -> int:
    from saccade.imports import export, files, folder, sources

    if given.random is not None and given.weights is not None:
        raise ImportFailure("--random and --weights exclude each other; leave one out")
    folder.check_target(given.output, given.overwrite)
    if given.source.endswith(files.SUFFIXES) and ":" not in given.source:
        for note in files.import_file(pathlib.Path(given.source), given.output, given.description, given.labels, given.run):
            print(f"{given.source}: {note}")
    else:
        kind, _, name = given.source.partition(":")
        # A folder's path is recorded for verify, which may run elsewhere.
        source = f"{kind}:{pathlib.Path(name).absolute()}" if kind == "transformers" and name else given.source
        record = folder.Record(source, given.weights, given.random)
        network = sources.build(record)
        if given.labels is not None:
            network.labels = files.read_labels(given.labels)
        folder.write(given.output, network, export.export(network), record)
        print(f"{given.source}: {'; '.join(network.notes)}")
    # A graph is data and needs no permission.
    permission = "" if given.source.endswith(".onnx") else " --allow-executable-models"
    print(f"wrote {given.output}; serve it by: saccaded --model-repository {given.output.absolute().parent}{permission}")
    return 0


def _verify(given: argparse.Namespace) -> int:
    import json

    import saccade
    from saccade.imports import comparing, verifying

    tolerance = comparing.Tolerance(
        **{one.name: getattr(given, f"{one.name}_tolerance") for one in dataclasses.fields(comparing.Tolerance)}
    )
    pictures = verifying.pictures_in(given.pictures)
    verifying.record_of(given.model)
    name = given.model.absolute().name
    try:
        if given.url is not None:
            with saccade.Client(given.url, timeout=600) as client:
                found = verifying.compare(given.model, client, name, pictures, tolerance)
        else:
            with verifying.serving(given.model, given.saccaded, given.start_seconds, given.saccaded_flag) as address:
                with saccade.Client(address, timeout=600) as client:
                    found = verifying.compare(given.model, client, name, pictures, tolerance)
    except saccade.SaccadeError as error:
        raise ImportFailure(f"the daemon answered with an error: {error}") from None
    good = found.within(tolerance)
    if given.json:
        print(json.dumps({**dataclasses.asdict(found), "within": good}))
        return 0 if good else 1
    print(f"{name}: {len(pictures)} pictures, {found.compared} results compared")
    for one in dataclasses.fields(comparing.Tolerance):
        value = getattr(found, one.name)
        if value is not None:
            most = getattr(tolerance, one.name)
            print(f"  {one.name:8} {value:.2e}  of {most:g} allowed{'' if value <= most else '  TOO MUCH'}")
    if found.unmatched:
        print(f"  {found.unmatched} detections that only one side has  TOO MUCH")
    if found.compared == 0 and found.unmatched == 0:
        print("  neither side found anything, so this shows nothing; expected pictures in which the network finds something  FAILED")
    return 0 if good else 1


def import_main() -> int:
    return main(["import", *sys.argv[1:]])


def verify_main() -> int:
    return main(["verify", *sys.argv[1:]])


def main(arguments: list[str] | None = None) -> int:
    """Runs the command that is the first of `arguments`. Returns the exit code."""
    given = _parser().parse_args(arguments)
    try:
        return _import(given) if given.command == "import" else _verify(given)
    except ImportFailure as error:
        print(f"saccade {given.command}: {error}", file=sys.stderr)
    except ModuleNotFoundError as error:
        print(
            f"saccade {given.command}: the package '{error.name}' is not installed; run: pip install 'saccade[import]'",
            file=sys.stderr,
        )
    except OSError as error:
        print(f"saccade {given.command}: {error}", file=sys.stderr)
    except KeyboardInterrupt:
        print(f"saccade {given.command}: interrupted", file=sys.stderr)
        return 130
    return 1
