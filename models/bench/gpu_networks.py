"""Compares and times the networks of the papers on a GPU: with the CPU's answers in float32, in float32 and bfloat16, one item
and eight at once, beside their PyTorch twins on the same GPU.

usage: gpu_networks.py --build DIR [--filter TEXT] [--seconds S] [--json FILE] [--markdown FILE] [--compile] [--all-sizes]
                       [--device cuda|cpu] [--list]

A pass is timed from pixels in the machine's memory to answers there, ours by saccade_time_model, the twins' likewise; all of
a network take turns, and the medians are given. The twins compute in channels-last, and in bfloat16 by autocast. A case that
fails is reported, and the next one runs; cases for which --seconds leave no time are reported as not run. --device cpu
rehearses all this without a GPU.
"""

import argparse
import concurrent.futures
import dataclasses
import json
import multiprocessing
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import warnings

import torch
from safetensors.torch import load_file

from models.bench.bench_models import shape_text, started
from models.bench.gpu_compare import Comparison, beside_twin, compared
from models.bench.twins import CASES, Case, findings, prepared
from models.reference import build
from models.reference.served import save, save_batch, whole

BATCHES = (1, 8)
# Items whose answers are compared with the CPU's.
COMPARED = 2
PRECISIONS = ("fp32", "bf16")
OFF = "without attention"
# One of each family first, in case the time does not suffice for all.
FIRST = ("ea_mask_rcnn_r50", "gsa_resnet50", "deeplabv2_kao_kv", "sanet", "ea_psmnet", "kanet_kv", "expatt_resnet50", "attnnet",
         "unet3d_sao_denoise", "ea_rc3d", "mask_rcnn_r50", "unet3d_sao_project")
MIN_ROUNDS, MAX_ROUNDS = 5, 30
SECONDS_OF_ROUNDS = 2.0
# The longest that one pass, one load or one preparation may take.
LIMIT_SECONDS = 60


def case_order(case: Case) -> int:
    return FIRST.index(case.name) if case.name in FIRST else len(FIRST)


def without_attention(case: Case, network: torch.nn.Module, sides: tuple) -> torch.nn.Module:
    plain = build(case.architecture, **{**case.options(sides), **case.attention_off})
    plain.load_state_dict(network.state_dict(), strict=False)
    return plain


def prepare(case: Case, sides: tuple, folder: pathlib.Path, binaries: pathlib.Path, threads: int):
    """Writes a case's weights, inputs, and the CPU's answers to its first items. Runs in a process of its own."""
    torch.set_num_threads(threads)
    with torch.no_grad():
        network, _ = case.build(sides)
        save(network, folder / "weights")
        if case.attention_off:
            save(without_attention(case, network, sides), folder / "weights_off")
    pixels = prepared(case, max(BATCHES), sides)
    save_batch(folder / "input", pixels, whole(pixels))
    with Passes(binaries, case, case.options(sides), folder, "weights", (), threads) as cpu:
        cpu.await_loaded()
        cpu.run(COMPARED)
        cpu.write(folder / "expected")


class Passes:
    """A process of saccade_time_model. Raises RuntimeError with what it said if it fails or takes too long."""

    def __init__(self, binaries: pathlib.Path, case: Case, options: dict, folder: pathlib.Path, weights: str, where: tuple,
                 threads: int):
        self.log = tempfile.TemporaryFile("w+")
        self.process = started(binaries, case.architecture, options, folder / weights, folder / "input", threads, where=where,
                               log=self.log)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.log.close()

    def line(self) -> str:
        late = threading.Timer(LIMIT_SECONDS, self.process.kill)
        late.start()
        line = self.process.stdout.readline()
        timed_out = not late.is_alive()
        late.cancel()
        if not line:
            self.process.wait()
            self.log.seek(0)
            said = self.log.read().strip().splitlines() or [f"exit code {self.process.returncode}"]
            raise RuntimeError(f"no answer after {LIMIT_SECONDS} s" if timed_out else said[0][:300])
        return line.strip()

    def await_loaded(self) -> float:
        """Returns the seconds that it took to load, without the start of the program."""
        word, milliseconds, _, _ = self.line().split()
        assert word == "loaded"
        return float(milliseconds) / 1000

    def ask(self, line: str) -> str:
        try:
            self.process.stdin.write(f"{line}\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass  # line() says why it has ended
        return self.line()

    def run(self, items: int) -> float:
        return float(self.ask(f"run {items}"))

    def write(self, path: pathlib.Path):
        assert self.ask(f"write {path}") == "written"

    def memory(self) -> tuple[int, int]:
        allocated, reserved = self.ask("memory").split()
        return int(allocated), int(reserved)


@dataclasses.dataclass
class Row:
    case: str
    shape: str  # of one item
    # By precision.
    comparisons: dict = dataclasses.field(default_factory=dict)
    peak_allocated: dict = dataclasses.field(default_factory=dict)
    peak_reserved: dict = dataclasses.field(default_factory=dict)
    # Milliseconds by candidate, such as "saccade bf16" or "eager fp32", and batch.
    milliseconds: dict = dataclasses.field(default_factory=dict)
    rounds: int = 0
    failures: list = dataclasses.field(default_factory=list)

    def text(self) -> str:
        times = ", ".join(f"{name} " + " / ".join(f"{by_batch[batch]:.2f}" if batch in by_batch else "-" for batch in BATCHES)
                          for name, by_batch in self.milliseconds.items())
        found = "; ".join(f"{precision}: {comparison['text']}" for precision, comparison in self.comparisons.items())
        peak = ", ".join(f"{precision} {size / 2**30:.2f}" for precision, size in self.peak_reserved.items())
        return f"{self.case} {self.shape} | {found} | ms at {' / '.join(map(str, BATCHES))}: {times} | GiB: {peak}" + "".join(
            f" | FAILED {failure}" for failure in self.failures)


class Twin:
    """The PyTorch twin on the device."""

    def __init__(self, case: Case, sides: tuple, weights: pathlib.Path, device: str, compile_it: bool):
        self.device = device
        self.layout = torch.channels_last if len(sides) == 2 else torch.channels_last_3d
        network = build(case.architecture, **case.options(sides))
        network.load_state_dict(load_file(weights))
        twin = case.twin(network).to(device)
        for parameter in twin.parameters():
            if parameter.dim() == len(sides) + 2:
                parameter.data = parameter.data.contiguous(memory_format=self.layout)
        self.eager = twin
        self.network = torch.compile(twin) if compile_it else twin

    def findings_in_bf16(self, pixels: torch.Tensor) -> dict[str, torch.Tensor]:
        with torch.no_grad(), torch.autocast(self.device, torch.bfloat16):
            return findings(self.eager, pixels.to(self.device).contiguous(memory_format=self.layout))

    def run(self, pixels: torch.Tensor, precision: str) -> float:
        start = time.perf_counter()
        with torch.no_grad(), torch.autocast(self.device, torch.bfloat16, enabled=precision == "bf16"):
            answer = self.network(pixels.to(self.device).contiguous(memory_format=self.layout))
            for part in answer if isinstance(answer, list) else [answer]:
                part.float().cpu()
        return 1000 * (time.perf_counter() - start)


class Loading:
    """A case's processes, which load while the case before it is compared."""

    def __init__(self, case: Case, sides: tuple, folder: pathlib.Path, arguments):
        self.case, self.sides, self.folder, self.arguments = case, sides, folder, arguments
        where = ("--gpu", "0") if arguments.device == "cuda" else ()
        options = case.options(sides)
        self.candidates = {}
        self.row = Row(case.name, shape_text(case.channels, sides))

        def start(name: str, extra: dict, weights: str):
            self.candidates[name] = Passes(arguments.build, case, {**options, **extra}, folder, weights, where, arguments.threads)

        for precision in PRECISIONS:
            start(f"saccade {precision}", {"precision": precision}, "weights")
        if case.attention_off:
            start(f"saccade bf16 {OFF}", {"precision": "bf16", **case.attention_off}, "weights_off")

    def close(self):
        for passes in self.candidates.values():
            passes.__exit__()

    def attempt(self, name: str, action):
        """Leaves a candidate that fails out of what follows, with the reason in the row."""
        try:
            return action()
        except Exception as error:  # collected: the other candidates and cases go on
            self.row.failures.append(f"{name}: {type(error).__name__}: {(str(error).strip().splitlines() or [''])[0][:300]}")
            return None

    def await_loaded(self):
        for name, passes in list(self.candidates.items()):
            if self.attempt(name, passes.await_loaded) is None:
                self.candidates.pop(name).__exit__()

    def warm_up(self):
        """Records each shape, and compares the answers of the largest batch's first items."""
        for name, passes in list(self.candidates.items()):
            def both(passes=passes):
                for batch in BATCHES:
                    passes.run(batch)
                    passes.run(batch)
                return passes

            if self.attempt(name, both) is None:
                self.candidates.pop(name).__exit__()
                continue
            precision = name.removeprefix("saccade ")
            if precision in PRECISIONS:
                self.attempt(f"{name} compared", lambda passes=passes, precision=precision: self.compare(passes, precision))

    def compare(self, passes: Passes, precision: str):
        passes.write(self.folder / precision)
        comparison: Comparison = compared(load_file(self.folder / precision), load_file(self.folder / "expected"), COMPARED,
                                          precision)
        # Findings in bf16 are judged beside the twin's.
        self.judge(precision, comparison, ends=not comparison.finds or precision != "bf16")

    def judge(self, precision: str, comparison: Comparison, ends: bool = True):
        self.row.comparisons[precision] = dataclasses.asdict(comparison)
        if ends and not comparison.passed:
            raise RuntimeError(f"{comparison.text}, expected {comparison.bound}")

    def compare_beside(self, twin: Twin | None, pixels: torch.Tensor):
        ours = Comparison(**self.row.comparisons["bf16"])
        if twin:
            ours = beside_twin(ours, twin.findings_in_bf16(pixels[:COMPARED]), load_file(self.folder / "expected"), COMPARED)
        self.judge("bf16", ours)

    def time(self):
        pixels = load_file(self.folder / "input")["pixels"]
        runs = {(name, batch): lambda passes=passes, batch=batch: passes.run(batch)
                for name, passes in self.candidates.items() for batch in BATCHES}
        for peer in ("eager", *(["torch.compile"] if self.arguments.compile else [])):
            twin = self.attempt(peer, lambda peer=peer: Twin(
                self.case, self.sides, self.folder / "weights", self.arguments.device, peer != "eager"))
            if peer == "eager" and self.row.comparisons.get("bf16", {}).get("finds"):
                self.attempt("saccade bf16 compared", lambda twin=twin: self.compare_beside(twin, pixels))
            for precision in PRECISIONS if twin else ():
                for batch in BATCHES:
                    def run(twin=twin, precision=precision, batch=batch):
                        return twin.run(pixels[:batch], precision)

                    if self.attempt(f"{peer} {precision}", lambda run=run: run() and run()) is not None:
                        runs[f"{peer} {precision}", batch] = run
        times = {key: [] for key in runs}
        start = time.perf_counter()
        while self.row.rounds < MIN_ROUNDS or (self.row.rounds < MAX_ROUNDS and time.perf_counter() - start < SECONDS_OF_ROUNDS):
            for (name, batch), run in list(runs.items()):
                took = self.attempt(f"{name}, {batch} items", run)
                if took is None:
                    del runs[name, batch]
                else:
                    times[name, batch].append(took)
            self.row.rounds += 1
            if not runs or time.perf_counter() - start > LIMIT_SECONDS:
                break
        for (name, batch), values in times.items():
            if values:
                self.row.milliseconds.setdefault(name, {})[batch] = statistics.median(values)
        if self.arguments.device == "cuda":
            for precision in PRECISIONS:
                if f"saccade {precision}" in self.candidates:
                    memory = self.attempt("memory", self.candidates[f"saccade {precision}"].memory)
                    if memory:
                        self.row.peak_allocated[precision], self.row.peak_reserved[precision] = memory
            torch.cuda.empty_cache()


def markdown(rows: list[Row], arguments) -> str:
    device = torch.cuda.get_device_name() if arguments.device == "cuda" else "the CPU, as a rehearsal"
    lines = [f"On {device}, PyTorch {torch.__version__}. Milliseconds of a pass at {' / '.join(map(str, BATCHES))} items, from pixels "
             "in the machine's memory to answers there: medians, candidates in turns. Compared with the CPU in float32.", ""]
    names = list(dict.fromkeys(name for row in rows for name in row.milliseconds))
    lines += ["| network | item | " + " | ".join([*names, *(f"{precision} compared" for precision in PRECISIONS), "peak GiB"]) + " |",
              "|" + "---|" * (len(names) + len(PRECISIONS) + 3)]
    for row in rows:
        cells = [" / ".join(f"{row.milliseconds.get(name, {}).get(batch, float('nan')):.2f}".replace("nan", "-") for batch in BATCHES)
                 for name in names]
        cells += [row.comparisons.get(precision, {}).get("text", "-") for precision in PRECISIONS]
        cells.append(" / ".join(f"{row.peak_reserved[precision] / 2**30:.2f}" for precision in PRECISIONS
                                if precision in row.peak_reserved) or "-")
        lines.append(f"| {row.case} | {row.shape} | " + " | ".join(cells) + " |")
    failures = [f"- {row.case}, {row.shape}: {failure}" for row in rows for failure in row.failures]
    return "\n".join([*lines, *(["", "Failed:", "", *failures] if failures else [])]) + "\n"


def write(rows: list[Row], arguments):
    if arguments.json:
        arguments.json.write_text(json.dumps([dataclasses.asdict(row) for row in rows], indent=1) + "\n")
    if arguments.markdown:
        arguments.markdown.write_text(markdown(rows, arguments))


def measure(chosen: list[tuple[Case, tuple]], arguments, folder: pathlib.Path) -> list[Row]:
    begun, rows, workers = time.monotonic(), [], max(1, min(4, (os.cpu_count() or 1) // 4))
    with concurrent.futures.ProcessPoolExecutor(workers, multiprocessing.get_context("spawn")) as pool:
        folders, futures = [], []
        for number, (case, sides) in enumerate(chosen):
            folders.append(folder / str(number))
            folders[-1].mkdir()
            futures.append(pool.submit(prepare, case, sides, folders[-1], arguments.build, arguments.threads))

        def finish(row: Row):
            rows.append(row)
            print(row.text(), flush=True)
            write(rows, arguments)

        def load(number: int) -> Loading | None:
            """Starts a case's processes as soon as it is prepared; None, with a row, if it cannot be."""
            case, sides = chosen[number]
            row = Row(case.name, shape_text(case.channels, sides))
            left = arguments.seconds - (time.monotonic() - begun)
            try:
                futures[number].result(timeout=max(0.0, left))
                return Loading(case, sides, folders[number], arguments)
            except concurrent.futures.TimeoutError:
                row.failures.append(f"not run: the {arguments.seconds:g} s are over")
            except Exception as error:  # collected
                row.failures.append(f"prepared: {type(error).__name__}: {str(error).strip()[:300]}")
            finish(row)
            return None

        loading = load(0)
        for number in range(len(chosen)):
            current = loading
            if current:
                current.await_loaded()
                current.warm_up()
            loading = load(number + 1) if number + 1 < len(chosen) else None
            if current:
                if loading:
                    loading.await_loaded()
                current.time()
                current.close()
                finish(current.row)
        for future in futures:
            future.cancel()
    return rows


def main() -> int | str:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build/release"))
    parser.add_argument("--filter", default="", help="only cases whose NAME/SIDES contains this text")
    parser.add_argument("--seconds", type=float, default=110, help="time limit for everything; the case in hand is finished")
    parser.add_argument("--threads", type=int, default=max(1, (os.cpu_count() or 1) // 4))
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--markdown", type=pathlib.Path)
    parser.add_argument("--compile", action="store_true", help="times the twins by torch.compile too, which takes minutes")
    parser.add_argument("--all-sizes", action="store_true", help="every size of bench_models.py instead of the first")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--list", action="store_true")
    arguments = parser.parse_args()
    chosen = [(case, sides) for case in sorted(CASES, key=case_order)
              for sides in (case.sizes if arguments.all_sizes else case.sizes[:1])
              if arguments.filter in f"{case.name}/{'x'.join(map(str, sides))}"]
    if arguments.list or not chosen:
        for case, sides in chosen:
            print(f"{case.name}/{'x'.join(map(str, sides))}")
        return 0 if chosen else f"no case contains '{arguments.filter}'"
    if arguments.device == "cuda" and not torch.cuda.is_available():
        return "no GPU: torch.cuda.is_available() is False; expected a machine with an NVIDIA GPU, or --device cpu to rehearse"
    warnings.filterwarnings("ignore")
    # Packed programs look for LibTorch there (tools/gpu_stage).
    os.environ.setdefault("SACCADE_PYTHON", sys.executable)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    with tempfile.TemporaryDirectory() as folder:
        rows = measure(chosen, arguments, pathlib.Path(folder))
    return 1 if any(row.failures for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
