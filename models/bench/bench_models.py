"""Times served networks beside their PyTorch twins: eager, torch.compile with frozen weights, and OpenVINO; in float32
and, on a processor that multiplies it, in bfloat16; ours also in int8, quantized on the batch that is timed.

usage: bench_models.py --build DIR [--filter TEXT] [--threads N] [--seconds S] [--without NAME]... [--json FILE]
                       [--markdown FILE] [--list]

All candidates compute the same batch with the same weights. Before timing, each result in float32 is compared with
eager's; one in bfloat16 has to have the same shape and be finite (models/reference/precision_test.py measures how far
off ours are). The candidates of a case take turns, round after round, so that other load on the machine affects all of
them. Prints medians, and their ratios to ours in the same precision. If a peer cannot run a network, its cell says so.
"without attention" is also ours: the same network with its attention left out. OpenMP's threads spin as the daemon would
have them do.
"""

import argparse
import contextlib
import copy
import dataclasses
import datetime
import json
import os
import pathlib
import platform
import re
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
import warnings

import torch
from torch import nn

from models.bench.twins import CASES, Case, prepared
from models.reference import build
from models.reference.served import multiplies_bfloat16, multiplies_int8, save, save_batch, whole

PEERS = ("eager", "torch.compile", "openvino", "torch.compile bf16", "openvino bf16")
OFF = "without attention"
OURS, COARSE, INT8 = "saccade", "saccade bf16", "saccade int8"
MIN_ROUNDS, MAX_ROUNDS = 3, 15
# After a pass, PyTorch's threads spin for about ten milliseconds.
PAUSE_SECONDS = 0.03
# Shorter passes are computed twice in a row, and the second is timed.
SHORT_MILLISECONDS = 200


def rounds_of_spinning(build: pathlib.Path) -> str:
    """Returns how long the daemon lets OpenMP's threads spin on this machine, which it measures when it starts."""
    if "GOMP_SPINCOUNT" in os.environ:
        return os.environ["GOMP_SPINCOUNT"]
    with tempfile.TemporaryDirectory() as empty:
        command = [build / "bin" / "saccaded", "--model-repository", empty, "--host", "127.0.0.1", "--log-format", "text",
                   *(flag for port in ("grpc", "http", "metrics") for flag in (f"--{port}-port", "0"))]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as daemon:
            found = (re.search(r"spin before they sleep rounds=(\d+)", line) for line in daemon.stderr)
            rounds = next(filter(None, found))[1]
            daemon.terminate()
    return rounds


def started(build: pathlib.Path, architecture: str, options: dict, weights: pathlib.Path, batch: pathlib.Path, threads: int,
            spinning: str = "1000", where: tuple = (), log=None) -> subprocess.Popen:
    """Starts saccade_time_model; `where` is () for the CPU or ("--gpu", "0"), `log` a file for its errors."""
    command = [build / "bin" / "saccade_time_model", architecture, weights, batch, str(threads), *where,
               *(f"{name}={value}" for name, value in options.items())]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True,
                            env={**os.environ, "GOMP_SPINCOUNT": spinning})


class Served:
    """Our side: a process that runs a pass on request."""

    def __init__(self, build: pathlib.Path, architecture: str, options: dict, network: nn.Module, pixels: torch.Tensor,
                 threads: int, spinning: str = "1000"):
        self.folder = tempfile.TemporaryDirectory()
        weights, batch = (pathlib.Path(self.folder.name) / name for name in ("weights", "input"))
        self.weight_bytes = os.path.getsize(save(network, weights))
        save_batch(batch, pixels, whole(pixels))
        self.process = started(build, architecture, options, weights, batch, threads, spinning)
        loaded, milliseconds, peak, self.isa = self.process.stdout.readline().split()
        assert loaded == "loaded"
        self.load_seconds, self.peak_bytes = float(milliseconds) / 1000, int(peak)

    def ask(self, line: str) -> str:
        self.process.stdin.write(f"{line}\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().rstrip("\n")

    def run(self) -> float:
        return float(self.ask("run"))

    def close(self):
        self.process.stdin.close()
        self.process.wait()
        self.folder.cleanup()


def compiled(twin: nn.Module, pixels: torch.Tensor):
    import torch._inductor.config as inductor

    inductor.freezing = True
    torch._dynamo.reset()
    return torch.compile(twin)


def compiled_bfloat16(twin: nn.Module, pixels: torch.Tensor):
    coarse = compiled(copy.deepcopy(twin).bfloat16(), pixels)
    return lambda x: coarse(x.bfloat16())


def in_openvino(twin: nn.Module, pixels: torch.Tensor, threads: int, precision: str):
    import openvino

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        converted = openvino.convert_model(torch.jit.trace(twin, pixels, check_trace=False), example_input=pixels,
                                           input=list(pixels.shape))
    # On processors that multiply bfloat16, bf16 is OpenVINO's default.
    settings = {"INFERENCE_PRECISION_HINT": precision, "PERFORMANCE_HINT": "LATENCY", "INFERENCE_NUM_THREADS": threads}
    request = openvino.compile_model(converted, "CPU", settings).create_infer_request()

    def run(x: torch.Tensor):
        outputs = request.infer({0: x.numpy()}, share_inputs=True, share_outputs=True)
        return [torch.from_numpy(outputs[port]) for port in outputs]

    return run


def require_agreement(name: str, got: torch.Tensor, expected: torch.Tensor):
    if got.shape != expected.shape:
        raise RuntimeError(f"{name} answered {list(got.shape)}, eager {list(expected.shape)}")
    error = ((got.double() - expected.double()).norm() / expected.double().norm()).item()
    if not error < 1e-3:
        raise RuntimeError(f"{name} differs from eager by {error:.1e}")


def require_numbers(name: str, got: torch.Tensor, expected: torch.Tensor):
    """In bfloat16 a detector may find another number of objects."""
    if got.shape[1:] != expected.shape[1:] or not got.isfinite().all():
        raise RuntimeError(f"{name} answered {list(got.shape)}, eager {list(expected.shape)}, or what is not finite")


def milliseconds(run) -> float:
    start = time.perf_counter()
    run()
    return 1000 * (time.perf_counter() - start)


def undisturbed(run) -> float:
    """The time of a pass that neither the threads nor the caches of the candidate before it disturb."""
    time.sleep(PAUSE_SECONDS)
    took = run()
    return run() if took < SHORT_MILLISECONDS else took


@dataclasses.dataclass
class Row:
    case: str
    shape: str
    rounds: int
    ours: float
    coarse: float | None  # in bfloat16
    int8: float | None
    peers: dict  # each peer's median, or the reason why there is none
    load_seconds: float
    peak_ratio: float


def compared(answer) -> torch.Tensor:
    """Returns the part of a result that is compared with eager's. For detectors it is the first picture's scores, best
    first, as rounding lets boxes of nearly equal score change places."""
    return answer if isinstance(answer, torch.Tensor) else answer[min(1, len(answer) - 1)]


def shape_text(batch: int, sides: tuple) -> str:
    return "x".join(map(str, (batch, *sides)))


def time_case(case: Case, batch: int, sides: tuple, arguments) -> tuple[Row, str]:
    network, twin = case.build(sides)
    pixels = prepared(case, batch, sides)
    candidates, remarks = {}, {}
    expected = compared(twin(pixels))
    makers = {
        "eager": lambda: twin,
        "torch.compile": lambda: compiled(twin, pixels),
        "openvino": lambda: in_openvino(twin, pixels, arguments.threads, "f32"),
        "torch.compile bf16": lambda: compiled_bfloat16(twin, pixels),
        "openvino bf16": lambda: in_openvino(twin, pixels, arguments.threads, "bf16"),
    }
    for name in columns(arguments):
        if name not in makers:
            continue
        require = require_numbers if name.endswith(" bf16") else require_agreement
        try:
            candidate = makers[name]()
            for _ in range(2):  # the first call may still compile or allocate
                require(name, compared(candidate(pixels)), expected)
            candidates[name] = lambda candidate=candidate: milliseconds(lambda: candidate(pixels))
        except Exception as error:  # a peer's own limits are reported, and do not end the run
            remarks[name] = f"{type(error).__name__}: {str(error).strip().splitlines()[0][:100]}"
            print(f"  {name}: {remarks[name]}", file=sys.stderr)
    with contextlib.ExitStack() as processes:
        def serve(options: dict, state: nn.Module) -> Served:
            served = Served(arguments.build, case.architecture, options, state, pixels, arguments.threads,
                            arguments.spinning)
            processes.callback(served.close)
            served.run()
            return served

        options = case.options(sides)
        served = serve(options, network)
        candidates = {OURS: served.run, **candidates}
        if arguments.bfloat16:
            candidates[COARSE] = serve({**options, "precision": "bf16"}, network).run
        # Convolutions of volumes and clips are not quantized.
        if arguments.int8 and len(sides) == 2:
            candidates[INT8] = serve({**options, "precision": "int8"}, network).run
        if case.attention_off:
            off = {**options, **case.attention_off}
            plain = build(case.architecture, **off)
            plain.load_state_dict(network.state_dict(), strict=False)
            candidates[OFF] = serve(off, plain).run
        times: dict[str, list] = {name: [] for name in candidates}
        start = time.perf_counter()
        while (done := len(times[OURS])) < MIN_ROUNDS or (done < MAX_ROUNDS
                                                                and time.perf_counter() - start < arguments.seconds):
            for name, run in candidates.items():
                times[name].append(undisturbed(run))
    medians = {name: statistics.median(values) for name, values in times.items()}
    peers = {name: medians.get(name, remarks.get(name)) for name in columns(arguments)}
    row = Row(case.name, shape_text(batch, sides), done, medians[OURS], medians.get(COARSE), medians.get(INT8), peers,
              served.load_seconds, served.peak_bytes / served.weight_bytes)
    return row, served.isa


def columns(arguments) -> list[str]:
    return [name for name in (*PEERS, OFF)
            if name not in arguments.without and (arguments.bfloat16 or not name.endswith(" bf16"))]


def shown(value: float) -> str:
    return f"{value:.1f} ms" if value < 100 else f"{value:.0f} ms"


def cell(value, ours: float | None) -> str:
    if not isinstance(value, float):
        return "cannot" if value else "-"
    return f"{shown(value)}, {value / ours:.2f}x" if ours else shown(value)


def table(rows: list[Row], peers: list[str]) -> str:
    exact, coarse = ([name for name in peers if name.endswith(" bf16") == lower] for lower in (False, True))
    names = ["network", "batch", OURS, *exact, *([COARSE, *coarse] if any(row.coarse for row in rows) else []),
             *([INT8] if any(row.int8 for row in rows) else []), "load", "peak / weights"]
    lines = ["| " + " | ".join(names) + " |", "|" + "---|" * len(names)]
    for row in rows:
        cells = [row.case, row.shape, shown(row.ours), *(cell(row.peers.get(name), row.ours) for name in exact)]
        if COARSE in names:
            ours = f"{shown(row.coarse)}, {row.coarse / row.ours:.2f} of fp32" if row.coarse else "-"
            cells += [ours, *(cell(row.peers.get(name), row.coarse) for name in coarse)]
        if INT8 in names:
            cells.append(f"{shown(row.int8)}, {row.int8 / row.ours:.2f} of fp32" if row.int8 else "-")
        lines.append("| " + " | ".join([*cells, f"{row.load_seconds:.1f} s", f"{row.peak_ratio:.2f}"]) + " |")
    return "\n".join(lines)


def reasons(rows: list[Row]) -> str:
    """Returns the reason for each "cannot", one per line."""
    return "".join(f"\n- {row.case}, {row.shape}: {why}" for row in rows for why in row.peers.values()
                   if isinstance(why, str))


def processor() -> str:
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":")[1].strip()
    return platform.processor()


def record() -> str:
    """Returns how and when this run was made, for the page that it writes."""
    said = shlex.join(sys.argv[1:])
    found = subprocess.run(["git", "describe", "--always", "--dirty"], capture_output=True, text=True, check=False)
    return f"    ./dev bench models {said}\n\nWritten by that command on {datetime.date.today()}, commit {found.stdout.strip()}.\n\n"


def heading(isa: str, arguments) -> str:
    versions = f"PyTorch {torch.__version__}"
    if "openvino" not in arguments.without:
        import openvino
        versions += f", OpenVINO {openvino.__version__.split('-')[0]}"
    return (record() + f"{processor()}{' with bfloat16' if multiplies_bfloat16() else ''}, {arguments.threads} threads that spin for "
            f"{arguments.spinning} rounds, kernels for {isa}; {versions}. Medians of {MIN_ROUNDS} to {MAX_ROUNDS} rounds, "
            "candidates in turns. \"1.70x\": it takes 1.7 times as long as ours in the same precision.\n")


def kept(path: pathlib.Path | None, chosen: list) -> list[Row]:
    """Returns the rows of an earlier run that this run does not measure again."""
    if path is None or not path.exists():
        return []
    measured = {(case.name, shape_text(batch, sides)) for case, batch, sides in chosen}
    rows = [Row(**{"int8": None, **row}) for row in json.loads(path.read_text())]
    return [row for row in rows if (row.case, row.shape) not in measured]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build/release"))
    parser.add_argument("--filter", default="", help="only cases whose NAME/BATCHxHEIGHTxWIDTH contains this text")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=40,
                        help=f"time limit for the rounds of a case; there are {MIN_ROUNDS} to {MAX_ROUNDS}")
    parser.add_argument("--without", action="append", default=[], choices=(*PEERS, "bf16", "int8"),
                        help="leaves a peer out, or all of bfloat16 or int8")
    parser.add_argument("--json", type=pathlib.Path, help="result file; keeps its rows of other cases")
    parser.add_argument("--markdown", type=pathlib.Path)
    parser.add_argument("--list", action="store_true")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    arguments.int8 = multiplies_int8() and "int8" not in arguments.without
    arguments.bfloat16 = multiplies_bfloat16() and "bf16" not in arguments.without
    cases = [(case, batch, sides) for case in CASES for sides in case.sizes for batch in case.batches]
    order = {(case.name, shape_text(batch, sides)): index for index, (case, batch, sides) in enumerate(cases)}
    chosen = [(case, batch, sides) for case, batch, sides in cases
              if arguments.filter in f"{case.name}/{shape_text(batch, sides)}"]
    if arguments.list or not chosen:
        for case, batch, sides in chosen:
            print(f"{case.name}/{shape_text(batch, sides)}")
        return 0 if chosen else f"no case contains '{arguments.filter}'"
    arguments.spinning = rounds_of_spinning(arguments.build)
    rows, isa = kept(arguments.json, chosen), ""
    peers = columns(arguments)
    with torch.no_grad():
        for index, (case, batch, sides) in enumerate(chosen):
            print(f"[{index + 1}/{len(chosen)}] {case.name}/{shape_text(batch, sides)}", file=sys.stderr, flush=True)
            row, isa = time_case(case, batch, sides, arguments)
            rows.append(row)
            print(table([row], peers).splitlines()[-1], flush=True)
            # Written after every case, so that a run that is stopped keeps its results.
            rows.sort(key=lambda row: order[row.case, row.shape])
            if arguments.json:
                arguments.json.write_text(json.dumps([dataclasses.asdict(row) for row in rows], indent=1) + "\n")
            if arguments.markdown:
                arguments.markdown.write_text(heading(isa, arguments) + "\n" + table(rows, peers) + "\n" + reasons(rows) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
