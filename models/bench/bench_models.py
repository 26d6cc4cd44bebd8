"""Times served networks beside their PyTorch twins: eager, torch.compile with frozen weights, and OpenVINO; in float32,
in bfloat16 where the processor multiplies it, and in int8, ours and OpenVINO's (by NNCF) quantized on the batch that is timed.

usage: bench_models.py --build DIR [--quick] [--filter TEXT] [--threads N] [--seconds S] [--without NAME]... [--json FILE]
                       [--markdown FILE] [--list]

All candidates compute the same batch with the same weights. Before timing, each result in float32 is compared with
eager's; one in bfloat16 or int8 has to have the same shape and be finite (models/reference/precision_test.py and int8_test.py
measure how far off ours are). The candidates of a case take turns, round after round, so that other load on the machine
affects all of them. Prints medians of the time of a batch, and their ratios to ours in the same precision. If a peer cannot
run a network, its cell says so. "without attention" is also ours: the same network with its attention left out. OpenMP's
threads spin as the daemon would have them do.

The throughput of ours is that of as many instances with one thread each as there are threads, which compute batches of that
size at the same time, as the daemon has them do for short passes; that of OpenVINO is with its hint for throughput.
"""

import argparse
import contextlib
import copy
import dataclasses
import datetime
import functools
import importlib.metadata
import importlib.util
import json
import logging
import os
import pathlib
import platform
import re
import shlex
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import warnings

import torch
from torch import nn

from models.bench.twins import CASES, QUICK, Case, prepared
from models.reference import build
from models.reference.served import multiplies_bfloat16, multiplies_int8, save, save_batch, whole

PEERS = ("eager", "torch.compile", "openvino", "torch.compile bf16", "openvino bf16", "openvino int8")
OFF = "without attention"
OURS, COARSE, INT8 = "saccade", "saccade bf16", "saccade int8"
# Whose throughput is measured.
RATED = (OURS, "openvino", COARSE, "openvino bf16", INT8, "openvino int8")
RATE_ROUNDS = 3
MIN_ROUNDS, MAX_ROUNDS = 3, 15
# After a pass, PyTorch's threads spin for about ten milliseconds.
PAUSE_SECONDS = 0.03
# Limit for the daemon to say how long OpenMP's threads spin.
MAX_START_SECONDS = 60
# Shorter passes are computed twice in a row, and the second is timed.
SHORT_MILLISECONDS = 200


@functools.cache
def rounds_of_spinning(build: pathlib.Path) -> str | None:
    """Returns how long the daemon lets OpenMP's threads spin on this machine, which it measures when it starts. None if it
    leaves that to OpenMP, because OMP_WAIT_POLICY is set."""
    if "GOMP_SPINCOUNT" in os.environ:
        return os.environ["GOMP_SPINCOUNT"]
    if "OMP_WAIT_POLICY" in os.environ:
        return None
    said = []
    with tempfile.TemporaryDirectory() as empty:
        command = [build / "bin" / "saccaded", "--model-repository", empty, "--host", "127.0.0.1", "--log-format", "text",
                   *(flag for port in ("grpc", "http", "metrics") for flag in (f"--{port}-port", "0"))]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as daemon:
            # Ends the loop below if the daemon never says it.
            late = threading.Timer(MAX_START_SECONDS, daemon.kill)
            late.start()
            for line in daemon.stderr:
                said.append(line)
                if found := re.search(r"spin before they sleep rounds=(\d+)", line):
                    break
            else:
                found = None
            late.cancel()
            daemon.terminate()
    if found is None:
        raise RuntimeError(f"{command[0]} did not log for how many rounds OpenMP's threads spin; it logged:\n{''.join(said)}")
    return found[1]


def environment(build: pathlib.Path) -> dict[str, str]:
    """This process's variables, with those that have OpenMP's threads spin as the daemon has them do."""
    rounds = rounds_of_spinning(build)
    return {**os.environ, **({} if rounds is None else {"GOMP_SPINCOUNT": rounds})}


def started(build: pathlib.Path, architecture: str, options: dict, weights: pathlib.Path, batch: pathlib.Path, threads: int,
            where: tuple = (), log=None) -> subprocess.Popen:
    """Starts saccade_time_model; `where` is () for the CPU or ("--gpu", "0"), `log` a file for its errors."""
    command = [build / "bin" / "saccade_time_model", architecture, weights, batch, str(threads), *where,
               *(f"{name}={value}" for name, value in options.items())]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True,
                            env=environment(build))


class Served:
    """Our side: a process that runs a pass on request."""

    def __init__(self, build: pathlib.Path, architecture: str, options: dict, network: nn.Module, pixels: torch.Tensor,
                 threads: int):
        self.folder = tempfile.TemporaryDirectory()
        weights, batch = (pathlib.Path(self.folder.name) / name for name in ("weights", "input"))
        self.weight_bytes = os.path.getsize(save(network, weights))
        save_batch(batch, pixels, whole(pixels))
        self.process = started(build, architecture, options, weights, batch, threads)
        loaded, milliseconds, peak, self.isa = self.process.stdout.readline().split()
        assert loaded == "loaded"
        self.load_seconds, self.peak_bytes = float(milliseconds) / 1000, int(peak)

    def ask(self, line: str) -> str:
        self.process.stdin.write(f"{line}\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().rstrip("\n")

    def run(self) -> float:
        return float(self.ask("run"))

    def rate(self, instances: int, milliseconds: int) -> float:
        """Items per second of so many instances that compute at the same time."""
        return float(self.ask(f"rate {instances} {milliseconds}"))

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


def as_graph(twin: nn.Module, pixels: torch.Tensor):
    """Returns the twin as OpenVINO's model, for this shape."""
    import openvino

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return openvino.convert_model(torch.jit.trace(twin, pixels, check_trace=False), example_input=pixels,
                                      input=list(pixels.shape))


def quantized(graph, pixels: torch.Tensor):
    """Returns OpenVINO's model in int8, which NNCF makes with its defaults."""
    import nncf

    nncf.set_log_level(logging.ERROR)
    # NNCF shows its progress on stdout, where the rows are.
    with contextlib.redirect_stdout(sys.stderr):
        return nncf.quantize(graph, nncf.Dataset([pixels.numpy()]), subset_size=1)


def compiled_graph(graph, threads: int, precision: str, hint: str):
    import openvino

    # On processors that multiply bfloat16, bf16 is OpenVINO's default.
    settings = {"INFERENCE_PRECISION_HINT": precision, "PERFORMANCE_HINT": hint, "INFERENCE_NUM_THREADS": threads}
    return openvino.compile_model(graph, "CPU", settings)


def in_openvino(graph, threads: int, precision: str):
    request = compiled_graph(graph, threads, precision, "LATENCY").create_infer_request()

    def run(x: torch.Tensor):
        outputs = request.infer({0: x.numpy()}, share_inputs=True, share_outputs=True)
        return [torch.from_numpy(outputs[port]) for port in outputs]

    return run


def rate_in_openvino(graph, pixels: torch.Tensor, threads: int, precision: str):
    """Returns a function that measures items per second for so many seconds, with all requests that OpenVINO wants."""
    import openvino

    queue = openvino.AsyncInferQueue(compiled_graph(graph, threads, precision, "THROUGHPUT"))
    inputs = {0: pixels.numpy()}

    def requests(seconds: float) -> float:
        start, passes = time.perf_counter(), 0
        while passes < len(queue) or time.perf_counter() - start < seconds:
            queue.start_async(inputs, share_inputs=True)  # waits for an idle request
            passes += 1
        queue.wait_all()
        return passes * len(pixels) / (time.perf_counter() - start)

    requests(0)  # the first passes allocate
    return requests


def require_agreement(name: str, got: torch.Tensor, expected: torch.Tensor):
    if got.shape != expected.shape:
        raise RuntimeError(f"{name} answered {list(got.shape)}, eager {list(expected.shape)}")
    error = ((got.double() - expected.double()).norm() / expected.double().norm()).item()
    if not error < 1e-3:
        raise RuntimeError(f"{name} differs from eager by {error:.1e}")


def require_numbers(name: str, got: torch.Tensor, expected: torch.Tensor):
    """In bfloat16 and int8 a detector may find another number of objects."""
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
    rates: dict = dataclasses.field(default_factory=dict)  # items per second of those in RATED, or the reason for none


def compared(answer) -> torch.Tensor:
    """Returns the part of a result that is compared with eager's. For detectors it is the first picture's scores, best
    first, as rounding lets boxes of nearly equal score change places."""
    return answer if isinstance(answer, torch.Tensor) else answer[min(1, len(answer) - 1)]


def shape_text(batch: int, sides: tuple) -> str:
    return "x".join(map(str, (batch, *sides)))


def precision_of(name: str) -> str:
    """The precision of a candidate, which its name ends with."""
    return name.rsplit(" ", 1)[-1] if name.endswith((" bf16", " int8")) else "fp32"


def reason(error: Exception) -> str:
    """Why a peer cannot compute a network, in a line."""
    return f"{type(error).__name__}: {(str(error).strip().splitlines() or [''])[0][:100]}"


def attempted(makers: dict) -> tuple[dict, dict]:
    """Returns what each maker made, and for those that failed the reason."""
    made, remarks = {}, {}
    for name, make in makers.items():
        try:
            made[name] = make()
        except Exception as error:
            remarks[name] = reason(error)
            print(f"  {name}: {remarks[name]}", file=sys.stderr)
    return made, remarks


class Peers:
    """The candidates in this process. What they cannot do is reported, and does not end the run."""

    def __init__(self, twin: nn.Module, pixels: torch.Tensor, arguments):
        self.pixels, self.threads = pixels, arguments.threads
        graph = functools.cache(lambda: as_graph(twin, pixels))
        int8_graph = functools.cache(lambda: quantized(graph(), pixels))
        # Layers that are not quantized are computed in OpenVINO's default precision.
        default = "bf16" if arguments.bfloat16 else "f32"
        self.graphs = {"openvino": (graph, "f32"), "openvino bf16": (graph, "bf16"), "openvino int8": (int8_graph, default)}
        makers = {
            "eager": lambda: twin,
            "torch.compile": lambda: compiled(twin, pixels),
            "torch.compile bf16": lambda: compiled_bfloat16(twin, pixels),
            **{name: lambda make=make, hint=hint: in_openvino(make(), self.threads, hint)
               for name, (make, hint) in self.graphs.items()},
        }
        expected = compared(twin(pixels))
        self.runs, self.remarks = attempted({name: lambda name=name: self.checked(name, makers[name](), expected)
                                             for name in columns(arguments) if name != OFF})

    def rates(self) -> tuple[dict, dict]:
        """Returns what measures the throughput of those that ran a batch, and why others cannot."""
        return attempted({name: lambda make=make, hint=hint: rate_in_openvino(make(), self.pixels, self.threads, hint)
                          for name, (make, hint) in self.graphs.items() if name in self.runs})

    def checked(self, name: str, candidate, expected: torch.Tensor):
        require = require_agreement if precision_of(name) == "fp32" else require_numbers
        for _ in range(2):  # the first call may still compile or allocate
            require(name, compared(candidate(self.pixels)), expected)
        return lambda: milliseconds(lambda: candidate(self.pixels))


def medians_of_turns(candidates: dict, measure, goes_on) -> tuple[dict, int]:
    """The candidates take turns while goes_on(rounds); returns each one's median of measure(candidate), and the rounds."""
    values: dict[str, list] = {name: [] for name in candidates}
    done = 0
    while goes_on(done):
        for name, candidate in candidates.items():
            values[name].append(measure(candidate))
        done += 1
    return {name: statistics.median(found) for name, found in values.items()}, done


def time_case(case: Case, batch: int, sides: tuple, arguments) -> tuple[Row, str]:
    network, twin = case.build(sides)
    pixels = prepared(case, batch, sides)
    peers = Peers(twin, pixels, arguments)
    with contextlib.ExitStack() as processes:
        def serve(options: dict, state: nn.Module, threads: int = arguments.threads) -> Served:
            served = Served(arguments.build, case.architecture, options, state, pixels, threads)
            processes.callback(served.close)
            served.run()
            return served

        options = case.options(sides)
        precisions = {OURS: options}
        if arguments.bfloat16:
            precisions[COARSE] = {**options, "precision": "bf16"}
        # Convolutions of volumes and clips are not quantized.
        if arguments.int8 and len(sides) == 2:
            precisions[INT8] = {**options, "precision": "int8"}
        ours = {name: serve(chosen, network) for name, chosen in precisions.items()}
        candidates = {OURS: ours[OURS].run, **peers.runs, **{name: served.run for name, served in ours.items()}}
        if case.attention_off:
            off = {**options, **case.attention_off}
            plain = build(case.architecture, **off)
            plain.load_state_dict(network.state_dict(), strict=False)
            candidates[OFF] = serve(off, plain).run
        start = time.perf_counter()
        medians, done = medians_of_turns(
            candidates, undisturbed,
            lambda rounds: rounds < MIN_ROUNDS or (rounds < MAX_ROUNDS and time.perf_counter() - start < arguments.seconds))
        rates, rate_remarks = {}, {}
        if arguments.throughput:
            rated, rate_remarks = peers.rates()
            for name, chosen in precisions.items():
                # Loaded for one thread, on which the layout of the weights depends.
                instance = serve(chosen, network, threads=1)
                rated[name] = lambda seconds, instance=instance: instance.rate(arguments.threads, round(1000 * seconds))
            rates, _ = medians_of_turns(rated, lambda rate: rate(arguments.rate_seconds), lambda rounds: rounds < RATE_ROUNDS)
    times = {name: medians.get(name, peers.remarks.get(name)) for name in columns(arguments)}
    row = Row(case.name, shape_text(batch, sides), done, medians[OURS], medians.get(COARSE), medians.get(INT8), times,
              ours[OURS].load_seconds, ours[OURS].peak_bytes / ours[OURS].weight_bytes, {**rate_remarks, **rates})
    return row, ours[OURS].isa


def columns(arguments) -> list[str]:
    measured = {"fp32": True, "bf16": arguments.bfloat16, "int8": arguments.int8}
    return [name for name in (*PEERS, OFF) if name not in arguments.without and measured[precision_of(name)]]


def shown(value: float) -> str:
    return f"{value:.1f} ms" if value < 100 else f"{value:.0f} ms"


def cell(value, ours: float | None) -> str:
    if not isinstance(value, float):
        return "cannot" if value else "-"
    return f"{shown(value)}, {value / ours:.2f}x" if ours else shown(value)


def table(rows: list[Row], peers: list[str]) -> str:
    exact, coarse, int8 = ([name for name in peers if precision_of(name) == precision] for precision in ("fp32", "bf16", "int8"))
    names = ["network", "batch", OURS, *exact, *([COARSE, *coarse] if any(row.coarse for row in rows) else []),
             *([INT8, *int8] if int8 or any(row.int8 for row in rows) else []), "load", "peak / weights"]
    lines = ["| " + " | ".join(names) + " |", "|" + "---|" * len(names)]
    for row in rows:
        cells = [row.case, row.shape, shown(row.ours), *(cell(row.peers.get(name), row.ours) for name in exact)]
        for column, ours, others in ((COARSE, row.coarse, coarse), (INT8, row.int8, int8)):
            if column in names:
                cells.append(f"{shown(ours)}, {ours / row.ours:.2f} of fp32" if ours else "-")
                cells += [cell(row.peers.get(name), ours) for name in others]
        lines.append("| " + " | ".join([*cells, f"{row.load_seconds:.1f} s", f"{row.peak_ratio:.2f}"]) + " |")
    return "\n".join(lines)


def rate_cell(row: Row, name: str) -> str:
    value = row.rates.get(name)
    if not isinstance(value, float):
        return "cannot" if value else "-"
    ours = row.rates.get({"fp32": OURS, "bf16": COARSE, "int8": INT8}[precision_of(name)])
    text = f"{value:.1f}/s" if value < 100 else f"{value:.0f}/s"
    return text if name.startswith(OURS) or not isinstance(ours, float) else f"{text}, {value / ours:.2f}x"


def rate_table(rows: list[Row]) -> str:
    """The throughputs, or nothing if none was measured."""
    rows = [row for row in rows if row.rates]
    names = [name for name in RATED if any(name in row.rates for row in rows)]
    if not names:
        return ""
    lines = ["", "", "Items per second; \"1.20x\": it computes 1.2 times as many as ours.", "",
             "| " + " | ".join(["network", "batch", *names]) + " |", "|" + "---|" * (2 + len(names))]
    lines += ["| " + " | ".join([row.case, row.shape, *(rate_cell(row, name) for name in names)]) + " |" for row in rows]
    return "\n".join(lines)


def reasons(rows: list[Row]) -> str:
    """Returns the reason for each "cannot", one per line."""
    told = [(row, why) for row in rows for why in (*row.peers.values(), *row.rates.values()) if isinstance(why, str)]
    return "".join(f"\n- {row.case}, {row.shape}: {why}" for row, why in told)


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


def spinning_text(rounds: str | None) -> str:
    return f"for {rounds} rounds" if rounds is not None else f"as OMP_WAIT_POLICY={os.environ['OMP_WAIT_POLICY']} has them do"


def heading(isa: str, arguments) -> str:
    versions = f"PyTorch {torch.__version__}"
    if "openvino" not in arguments.without:
        import openvino
        versions += f", OpenVINO {openvino.__version__.split('-')[0]}"
    if "openvino int8" in columns(arguments) and importlib.util.find_spec("nncf"):
        versions += f", NNCF {importlib.metadata.version('nncf')}"
    return (record() + f"{processor()}{' with bfloat16' if multiplies_bfloat16() else ''}, {arguments.threads} threads that spin "
            f"{spinning_text(rounds_of_spinning(arguments.build))}, kernels for {isa}; {versions}. Medians of {MIN_ROUNDS} to {MAX_ROUNDS} rounds, "
            "candidates in turns. \"1.70x\": it takes 1.7 times as long as ours in the same precision.\n")


def kept(path: pathlib.Path | None, chosen: list) -> list[Row]:
    """Returns the rows of an earlier run that this run does not measure again."""
    if path is None or not path.exists():
        return []
    measured = {(case.name, shape_text(batch, sides)) for case, batch, sides in chosen}
    rows = [Row(**{"int8": None, "rates": {}, **row}) for row in json.loads(path.read_text())]
    return [row for row in rows if (row.case, row.shape) not in measured]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build/release"))
    parser.add_argument("--filter", default="", help="only cases whose NAME/BATCHxHEIGHTxWIDTH contains this text")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=40,
                        help=f"time limit for the rounds of a case; there are {MIN_ROUNDS} to {MAX_ROUNDS}")
    parser.add_argument("--without", action="append", default=[], choices=(*PEERS, "bf16", "int8", "throughput"),
                        help="leaves a peer out, all of bfloat16 or int8, or the throughputs")
    parser.add_argument("--quick", action="store_true", help="a small network for some seconds, without torch.compile")
    parser.add_argument("--json", type=pathlib.Path, help="result file; keeps its rows of other cases")
    parser.add_argument("--markdown", type=pathlib.Path)
    parser.add_argument("--list", action="store_true")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    arguments.int8 = multiplies_int8() and "int8" not in arguments.without
    arguments.bfloat16 = multiplies_bfloat16() and "bf16" not in arguments.without
    arguments.throughput = "throughput" not in arguments.without
    arguments.rate_seconds = 1.0
    if arguments.quick:
        arguments.without += ["torch.compile", "torch.compile bf16"]
        arguments.seconds, arguments.rate_seconds = min(arguments.seconds, 1.0), 0.1
    networks = QUICK if arguments.quick else CASES
    cases = [(case, batch, sides) for case in networks for sides in case.sizes for batch in case.batches]
    order = {(case.name, shape_text(batch, sides)): index for index, (case, batch, sides) in enumerate(cases)}
    chosen = [(case, batch, sides) for case, batch, sides in cases
              if arguments.filter in f"{case.name}/{shape_text(batch, sides)}"]
    if arguments.list or not chosen:
        for case, batch, sides in chosen:
            print(f"{case.name}/{shape_text(batch, sides)}")
        return 0 if chosen else f"no case contains '{arguments.filter}'"
    rows, isa = kept(arguments.json, chosen), ""
    peers = columns(arguments)
    with torch.no_grad():
        for index, (case, batch, sides) in enumerate(chosen):
            print(f"[{index + 1}/{len(chosen)}] {case.name}/{shape_text(batch, sides)}", file=sys.stderr, flush=True)
            row, isa = time_case(case, batch, sides, arguments)
            rows.append(row)
            print(table([row], peers).splitlines()[-1], flush=True)
            # Written after every case, so that a run that is stopped keeps its results.
            rows.sort(key=lambda row: order.get((row.case, row.shape), len(order)))
            if arguments.json:
                arguments.json.write_text(json.dumps([dataclasses.asdict(row) for row in rows], indent=1) + "\n")
            if arguments.markdown:
                arguments.markdown.write_text(heading(isa, arguments) + "\n" + table(rows, peers) + rate_table(rows) + "\n"
                                              + reasons(rows) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
