"""Helpers shared by the operators' checks on a GPU machine: arguments, error bounds, CUDA graphs, timing.

A check goes on after a wrong result. Each is printed, and run() exits with 1 at the end if there was one.
"""

import argparse
import json
import os
import pathlib
import statistics
import sys
import time

import gpu_stand_in
import torch

BOUNDS = {torch.float32: 1e-6, torch.bfloat16: 1e-2, torch.float16: 2e-3}
ROUNDING = {torch.float32: 2.0**-24, torch.bfloat16: 2.0**-9, torch.float16: 2.0**-12}
# Calls in one timed graph: events around a graph of one call of some microseconds would measure its launch. A graph
# has fewer of calls that take longer than GRAPH_SECONDS together.
CALLS_IN_GRAPH = 10
GRAPH_SECONDS = 5e-3
# Written between timed graphs where maps shall not be in the cache; an H200 has an L2 cache of 60 MB.
FLUSHED_BYTES = 128 << 20
# What an H200 does at most: bytes a second of a copy and operations a second of a bf16 product, both measured
# (docs/benchmarks/kernels-gpu.md), and float32 operations a second by its data sheet.
COPY_RATE = 4.286e12
PEAK_RATE = {torch.float32: 67e12, torch.bfloat16: 792e12, torch.float16: 792e12}
LAYOUTS = {"NCHW": torch.contiguous_format, "NHWC": torch.channels_last}
MAX_ROUNDS, MIN_ROUNDS = 200, 10
SECONDS_FOR_EACH_CASE = 0.2

failures = []
options = None
timed_cases = 0


class EnoughCases(Exception):
    """As many cases were timed as were asked for."""


def write_row(row):
    """Appends a line of JSON to the file that was asked for. Other checks may append to it at the same time."""
    if options.rows:
        with options.rows.open("a") as rows:
            rows.write(json.dumps(row) + "\n")


def expect(holds, what):
    """Notes a failure unless `holds`."""
    if holds:
        return
    failures.append(what)
    print(f"  WRONG {what}", flush=True)
    write_row({"wrong": what})


def can_capture():
    """Whether calls can be recorded. With LibTorch's caching allocator disabled, as under memcheck, every allocation is
    a cudaMalloc, which a capture forbids."""
    return os.environ.get("PYTORCH_NO_CUDA_MEMORY_CACHING") != "1" and not gpu_stand_in.installed


def run(doc, check_all, time_all):
    """Runs a check as the command line says. Exits with 1 if something was wrong."""
    ops = start(doc)
    if options.times:
        try:
            time_all(ops)
        except EnoughCases:
            pass
    else:
        check_all(ops, options.quick)
    if failures:
        sys.exit(f"{len(failures)} of the results are wrong, the first: {failures[0]}")
    print("timed" if options.times else "all results are right")


def start(doc):
    """Reads the command line and returns the operators of the build that it names."""
    global options
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path, help="build folder with lib/libsaccade_kernels.so and lib/libsaccade_cuda.so")
    parser.add_argument("--quick", action="store_true", help="check small shapes, for compute-sanitizer")
    parser.add_argument("--times", action="store_true", help="time instead")
    parser.add_argument("--most", type=int, help="time at most so many cases")
    parser.add_argument("--compile", action="store_true", help="time torch.compile, too, which takes long to compile")
    parser.add_argument("--stand-in", action="store_true", help="rehearse on the CPU, where no GPU is")
    parser.add_argument("--rows", type=pathlib.Path, help="file to which each error and each time is appended, as a line of JSON")
    options = parser.parse_args()
    torch.ops.load_library(options.build / "lib" / "libsaccade_kernels.so")
    torch.ops.load_library(options.build / "lib" / "libsaccade_cuda.so")
    if options.stand_in:
        gpu_stand_in.install()
        del BOUNDS[torch.float16]  # The operators know it on a GPU alone.
    if not torch.cuda.is_available():
        sys.exit("no GPU: torch.cuda.is_available() is False; expected a machine with an NVIDIA GPU and driver")
    torch.manual_seed(0)
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.set_grad_enabled(False)
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}")
    return torch.ops.saccade


def relative_error(got, expected):
    return ((got.double().cpu() - expected).norm() / expected.norm()).item()


def check_error(what, got, expected, composed=None):
    """Checks the error against float64, with a fixed bound and, if given, twice the error of `composed` (ATen, same
    dtype)."""
    error = relative_error(got, expected)
    allowed = BOUNDS[got.dtype]
    if composed is not None:
        allowed = min(allowed, 2 * max(relative_error(composed, expected), ROUNDING[got.dtype]))
    write_row({"check": what, "error": error, "allowed": allowed})
    expect(error <= allowed, f"{what}: off by {error:.2e}, expected at most {allowed:.2e}")
    return error


def check_same(what, run, got, x):
    """Checks that run(x) gives the bits of `got` again, and that each sample gives the same bits when it runs alone."""
    expect(torch.equal(run(x), got), f"{what}: the result changes from run to run")
    for b in range(len(x)):
        expect(torch.equal(run(x[b:b + 1]), got[b:b + 1]), f"{what}: sample {b} depends on its batch")


def padded(x):
    """Returns x inside 32 x 40 positions of NaN, and its extent in the form of the operators' `valid` argument."""
    wide = x.new_full((*x.shape[:2], 32, 40), float("nan"))
    wide[:, :, :x.shape[2], :x.shape[3]] = x
    return wide, torch.tensor([x.shape[2:]] * len(x), device=x.device)


def check_padded(what, got, expected):
    """Checks that a padded map gives the same bits as the map alone, and zeros in the padding."""
    height, width = expected.shape[2:]
    expect(torch.equal(got[:, :, :height, :width], expected), f"{what}: padding changes the result")
    expect(got[:, :, height:].abs().sum() == 0 and got[:, :, :, width:].abs().sum() == 0, f"{what}: padding is not zero")


def captured(run, calls=1):
    """Returns `calls` calls as a CUDA graph. Capturing fails if the call synchronizes or allocates outside LibTorch's
    allocator."""
    return captured_calls([run] * calls)


def captured_calls(calls):
    """Returns the calls, one after the other, as a CUDA graph."""
    for _ in range(3):
        calls[0]()
    if gpu_stand_in.installed:
        return lambda: [call() for call in calls]
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for call in calls:
            call()
    return graph.replay


def captured_result(run):
    """Returns the captured call and its result tensor, which every replay overwrites."""
    results = []
    replay = captured(lambda: results.append(run()))
    return replay, results[-1]


def check_capture(what, run):
    """Checks that a replayed graph gives the same bits as the call itself."""
    if not can_capture():
        return
    expected = run()
    replay, got = captured_result(run)
    got.fill_(float("nan"))
    replay()
    torch.cuda.synchronize()
    expect(torch.equal(got, expected), f"{what}: a captured call gives a different result")


def compiled(run):
    """The function through torch.compile, or None if that is not asked for."""
    if not options.compile:
        return None
    # Without a GPU there is nothing to compile for.
    return run if gpu_stand_in.installed else torch.compile(run)


def in_layout(x, layout):
    """Returns the map on the GPU, in the layout of this name."""
    return x.contiguous(memory_format=LAYOUTS[layout]).cuda()


def calls_in_graph(run):
    """How many calls a timed graph has: fewer of calls that take long."""
    run()
    torch.cuda.synchronize()
    begun = time.perf_counter()
    run()
    torch.cuda.synchronize()
    return max(1, min(CALLS_IN_GRAPH, round(GRAPH_SECONDS / max(time.perf_counter() - begun, 1e-9))))


def medians_us(candidates, maps=None):
    """Returns the median microseconds per call of each candidate that is not None. Candidates take turns. Each is a
    CUDA graph of several calls, so that launches by the host are not measured.

    Without `maps` the calls, which take no arguments, read the same memory again, so that a map that fits into the L2
    cache is read from there. With `maps`, a tuple, each call is given its own copies of them, and the cache is emptied
    before each graph."""
    replays, calls = {}, {}
    for name, run in candidates.items():
        if run is None:
            continue
        try:
            calls[name] = calls_in_graph(run if maps is None else lambda run=run: run(*maps))
            copies = [() if maps is None else tuple(t.clone() for t in maps) for _ in range(calls[name])]
            replays[name] = captured_calls([lambda run=run, given=given: run(*given) for given in copies])
        except (RuntimeError, TypeError) as error:
            expect(False, f"{name} cannot be timed: {str(error).splitlines()[0]}")
    flushed = None
    if maps is not None:
        flushed = torch.empty(1 << 10 if gpu_stand_in.installed else FLUSHED_BYTES, dtype=torch.uint8, device="cuda")
    times = {name: [] for name in replays}
    begun = time.perf_counter()
    for i in range(MAX_ROUNDS):
        if i >= MIN_ROUNDS and time.perf_counter() - begun > SECONDS_FOR_EACH_CASE:
            break
        for name, replay in replays.items():
            if flushed is not None:
                flushed.zero_()
            begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            begin.record()
            replay()
            end.record()
            end.synchronize()
            times[name].append(begin.elapsed_time(end) * 1e3 / calls[name])
    return {name: statistics.median(values[2:]) for name, values in times.items()}


def time_layouts(what, candidates, maps, moved_bytes=None, operations=0):
    """Times candidates, functions of the maps, twice: with contiguous maps that stay in the cache, and with
    channels-last ones, as the daemon's networks have them, that come from memory."""
    dtype = maps[0].dtype
    warm = tuple(in_layout(t, "NCHW") for t in maps)
    bound = {name: run and (lambda run=run: run(*warm)) for name, run in candidates.items()}
    print_medians(what, medians_us(bound), moved_bytes, operations, dtype)
    cold = tuple(in_layout(t, "NHWC") for t in maps)
    print_medians(f"{what}, channels-last from memory", medians_us(candidates, cold), moved_bytes, operations, dtype)


def floor_us(moved_bytes, operations, dtype):
    """The microseconds below which no kernel can be on an H200: to move the bytes, or to do the operations."""
    return max(moved_bytes / COPY_RATE, operations / PEAK_RATE[dtype]) * 1e6


def print_medians(what, medians, moved_bytes=None, operations=0, dtype=None):
    """Prints a case: the time of each candidate, and its ratio to saccade's. `moved_bytes` is what the operator must
    read and write at least, `operations` what it must compute with maps of this type."""
    ours = medians.get("saccade")
    floor = None if moved_bytes is None or dtype is None else floor_us(moved_bytes, operations, dtype)
    print(what if floor is None or ours is None else
          f"{what}: at least {floor:.2f} us, {moved_bytes / ours / 1e3:.0f} GB/s of what must be moved")
    width = max(len(name) for name in medians)
    for name, median in medians.items():
        print(f"  {name:{width}} {median:9.2f} us  {median / ours if ours else float('nan'):6.2f}x", flush=True)
    write_row({"case": what, "moved_bytes": moved_bytes, "floor_us": floor, "us": medians})
    global timed_cases
    timed_cases += 1
    if timed_cases == options.most:
        raise EnoughCases
