"""Tests of libsaccade_cuda.so and of its checks, on a machine without a GPU."""

import argparse
import importlib
import importlib.machinery
import importlib.util
import json
import os
import pathlib
import select
import signal
import subprocess
import sys

import pytest
import torch

from tests.long_form import in_long_form

ROOT = pathlib.Path(__file__).parents[2]
BUILD = pathlib.Path(os.environ["SACCADE_BUILD_DIR"])
PLUGIN = BUILD / "lib" / "libsaccade_cuda.so"


def python(program):
    # A process of its own: what it loads cannot come from an earlier test.
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)


def test_the_plugin_loads_and_registers_its_operators():
    done = python(f"""
import torch
torch.ops.load_library({str(BUILD / 'lib' / 'libsaccade_kernels.so')!r})
torch.ops.load_library({str(PLUGIN)!r})
for name in ("sao", "efficient_attention", "gsa", "kao_kv", "attention", "expatt", "roi_align", "nms_padded"):
    assert torch._C._dispatch_has_kernel_for_dispatch_key("saccade::" + name, "CUDA"), name
print("loaded")
""")
    assert done.stdout == "loaded\n", done.stderr


def test_the_plugin_names_each_library_that_it_needs():
    """LibTorch's own programs may have loaded a library already that the daemon has not."""
    read = subprocess.run(["readelf", "-d", PLUGIN], capture_output=True, text=True, check=True).stdout
    needed = {line.split("[")[1].rstrip("]") for line in read.splitlines() if "(NEEDED)" in line}
    assert {"libtorch_cuda.so", "libc10_cuda.so", "libtorch_cpu.so", "libc10.so"} <= needed
    # The linker refuses symbols that none of them has (-z defs).
    undefined = subprocess.run(["nm", "-D", "--undefined-only", "--demangle", PLUGIN], capture_output=True, text=True, check=True)
    assert "at::cuda::CUDAGraph" in undefined.stdout, "the test looks at the wrong library"


def rehearse(folder, *arguments, path=None):
    """./dev gpu on the CPU."""
    command = [sys.executable, "tools/gpu", "--stand-in", "--quick", "--seconds", "550", "--most", "2", "--build", str(BUILD),
               "--out", str(folder), *arguments]
    environment = {**os.environ, "OMP_NUM_THREADS": "2", **({"PATH": f"{path}:{os.environ['PATH']}"} if path else {})}
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env=environment)
    return done, (folder / "kernels-gpu.md").read_text(), json.loads((folder / "kernels-gpu.json").read_text())


def program_that_starts_another(folder, name):
    """Puts a stand-in for one of CUDA's tools into the folder: it notes its arguments and runs the program that they name."""
    at = folder / name
    at.write_text(f'''#!{sys.executable}
import os, pathlib, sys
first = sys.argv.index(sys.executable)
with open({str(folder / "started")!r}, "a") as started:
    started.write(" ".join([{name!r}, *sys.argv[1:first]]) + "\\n")
os.execv(sys.executable, sys.argv[first:])
''')
    at.chmod(0o755)


def test_all_parts_of_a_run_on_a_gpu_run_to_their_end(tmp_path):
    """A rehearsal on the CPU: each part passes, each error and each time is written, and the report says what there was."""
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("ncu", "compute-sanitizer"):
        program_that_starts_another(tools, name)
    names = ["sao", *in_long_form("nms")]
    done, report, found = rehearse(tmp_path, "--operators", ",".join(names), path=tools)
    assert done.returncode == 0, done.stderr
    parts = ["device"] + [f"{part} of {name}" for part in ("checks", "times", "counters", "memcheck", "racecheck", "compile")
                          for name in names]
    assert [(part["name"], part["result"]) for part in found["parts"]] == [(part, "passed") for part in parts]
    for part in parts:
        assert f"| {part} | passed |" in report
    assert found["device"].startswith("a stand-in on the CPU") and "GB/s" in found["device"] and "TFLOP/s" in found["device"]
    assert len(found["checks"]) > 10 and all(row["error"] <= row["allowed"] for row in found["checks"])
    times, compiled = found["times"][:2 * len(names)], found["times"][2 * len(names):]
    assert len(compiled) == 2 * len(names) and all(row["us"]["saccade"] > 0 for row in found["times"])
    assert [row["case"].count("channels-last from memory") for row in times] == [0, 1, 0, 0][:2 * len(names)]
    assert "torch.compile" in compiled[0]["us"] and times[0]["floor_us"] > 0
    assert report.count("| sao (") == 4
    started = (tools / "started").read_text().splitlines()
    assert [line.split()[0] for line in started] == ["ncu"] * len(names) + ["compute-sanitizer"] * 2 * len(names)
    assert [sum(f"--tool {kind}" in line for line in started) for kind in ("memcheck", "racecheck")] == [len(names)] * 2


def tools_gpu():
    """The program tools/gpu as a module."""
    loader = importlib.machinery.SourceFileLoader("gpu", str(ROOT / "tools" / "gpu"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("gpu", loader))
    loader.exec_module(module)
    return module


def test_a_tool_that_is_missing_does_not_end_the_run(tmp_path, monkeypatch):
    gpu = tools_gpu()
    monkeypatch.setattr(gpu, "tool", lambda name: str(tmp_path / name))
    options = argparse.Namespace(out=tmp_path, seconds=550, libraries=BUILD, stand_in=True, quick=True, most=1, operators=["sao"],
                                 parts=["counters", "memcheck", "checks"])
    assert gpu.run(options)
    parts = json.loads((tmp_path / "kernels-gpu.json").read_text())["parts"]
    missing = "not run: {} cannot be started (No such file or directory)"
    assert [part["result"] for part in parts] == [missing.format(tmp_path / "ncu"), missing.format(tmp_path / "compute-sanitizer"), "passed"]


class ToolWithAChild:
    """A stand-in for ncu that starts a child, as ncu does, and waits for it. Neither ends by itself."""

    def __init__(self, folder):
        self.program = folder / "ncu"
        fifo = folder / "fifo"
        os.mkfifo(fifo)
        child = f"import os, signal; pipe = open({str(fifo)!r}, 'w'); pipe.write(str(os.getpid())); pipe.flush(); signal.pause()"
        self.program.write_text(f"#!{sys.executable}\nimport subprocess, sys\nsubprocess.run([sys.executable, '-c', {child!r}])\n")
        self.program.chmod(0o755)
        self.pipe = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
        self.child = None

    def read(self):
        assert select.select([self.pipe], [], [], 60)[0], "the child neither wrote nor ended within 60 s"
        return os.read(self.pipe, 100)

    def await_child(self):
        self.child = int(self.read())

    def child_has_ended(self):
        """The pipe is at its end once no process has it open for writing."""
        ended = self.read() == b""
        if ended:
            self.child = None
        return ended

    def close(self):
        if self.child:
            os.kill(self.child, signal.SIGKILL)
        os.close(self.pipe)


@pytest.fixture
def tool_with_a_child(tmp_path):
    tool = ToolWithAChild(tmp_path)
    yield tool
    tool.close()


def test_out_of_time_ends_what_the_tool_has_started(tmp_path, tool_with_a_child):
    """ncu's child would keep the GPU, and change what later parts measure."""
    gpu = tools_gpu()
    report = gpu.Report(tmp_path / "report", 550, BUILD)
    *begun, _ = report.begin("counters of sao", [tool_with_a_child.program], 100)
    tool_with_a_child.await_child()
    report.end((*begun, 0))
    assert [row[:2] for row in report.rows] == [("counters of sao", "out of time")]
    assert tool_with_a_child.child_has_ended()


def test_a_run_that_is_ended_ends_its_parts(tmp_path, tool_with_a_child):
    command = [sys.executable, "tools/gpu", "--stand-in", "--parts", "counters", "--operators", "sao", "--build", str(BUILD),
               "--out", str(tmp_path / "report")]
    with subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True,
                          env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}) as run:
        try:
            tool_with_a_child.await_child()
            run.terminate()
            assert "ended by SIGTERM" in run.communicate(timeout=60)[1] and run.returncode == 1
        finally:
            run.kill()
    assert tool_with_a_child.child_has_ended()


def test_a_row_that_was_cut_off_does_not_end_the_report(tmp_path):
    gpu = tools_gpu()
    rows = tmp_path / "rows"
    rows.write_text('{"wrong": "a case"}\n{"case": "b", "moved_bytes": null, "us": {"saccade": 2, "eager": 3}}\n{"case": "c", "mov')
    assert len(gpu.rows_of(rows)) == 2
    assert gpu.times_table(rows)[-1] == "| b | 2.0 |  | eager 3.0 | 1.50 |  |"


def test_the_peers_of_a_gpu_are_rehearsed(tmp_path):
    """Beside bfloat16 maps saccade has float32 weights; a result that is wrong with them would not be timed."""
    command = [sys.executable, "kernels/bench/bench_peers.py", "--build", str(BUILD), "--device", "cuda", "--stand-in",
               "--seconds", "0.001", "--filter", "14x14", "--json", str(tmp_path / "peers.json")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "2"})
    assert done.returncode == 0, done.stderr
    names = [row["name"] for row in json.loads((tmp_path / "peers.json").read_text())["benchmarks"]]
    for case in ("attention/softmax", "gsa/operator", "kao/kv", "kao/qkv", "sao/module"):
        for dtype in ("float32", "bfloat16"):
            assert any(name.startswith(f"{case}, {dtype}/") and name.endswith("/saccade") for name in names), (case, dtype)


def test_floors_are_those_of_the_operators():
    """Beside estimates that were made by hand: what 4.3 TB/s and 790 TFLOP/s allow."""
    sys.path.append(str(ROOT / "kernels" / "common"))
    gpu_check = importlib.import_module("gpu_check")

    def floor(operator, *arguments):
        sys.path.append(str(ROOT / "kernels" / operator))
        check = importlib.import_module(f"{operator}_gpu_check")
        return gpu_check.floor_us(*check.floor(*arguments), arguments[-1])

    half, single = torch.bfloat16, torch.float32
    assert floor("efficient_attention", (1, 256, 224, 320), 64, half) == pytest.approx(26, rel=0.03)
    assert floor("efficient_attention", (1, 256, 224, 320), 64, single) == pytest.approx(9.4e9 / 67e12 * 1e6, rel=0.01)
    assert floor("sao", (1, 256, 56, 56), half) == pytest.approx(1.1, rel=0.03)
    assert floor("kao", (8, 256, 56, 56), "kv", half) == pytest.approx(9, rel=0.03)
    assert floor("gsa", (64, 64, 56, 56), half) == pytest.approx(14, rel=0.03)
    assert floor("expatt", "gaussian", (1, 16, 56, 56), half) < 0.1
    assert floor("expatt", "linear", (32, 16, 56, 56), half) == pytest.approx(2 * 3136**2 * 512 / 792e6, rel=0.01)
    assert floor("attention", (1, 256, 56, 56), "softmax", half) == pytest.approx(4 * 3136**2 * 256 / 792e6, rel=0.01)


@pytest.mark.parametrize("operator", ("efficient_attention", "gsa", "sao", "attention", "expatt", "kao", "roi_align"))
def test_each_case_is_timed_at_each_batch(operator, monkeypatch):
    for folder in ("common", operator):
        sys.path.append(str(ROOT / "kernels" / folder))
    check = importlib.import_module(f"{operator}_gpu_check")
    batches = {}

    def note(_, *arguments):
        if operator == "roi_align":
            count, *case, batch = arguments
            case.append(count // batch)
        else:
            [shape] = [argument for argument in arguments if isinstance(argument, tuple) and isinstance(argument[0], int)]
            batch, *sides = shape
            case = [sides if argument is shape else argument for argument in arguments]
        batches.setdefault(str(case), set()).add(batch)

    monkeypatch.setattr(check, "time_one", note)
    check.time_all(None)
    assert batches and all(timed >= {1, 8, 32} for timed in batches.values()), batches


def test_a_wrong_result_is_named_and_the_rest_goes_on(tmp_path):
    (tmp_path / "broken_check.py").write_text(f"""
import sys
sys.path.append({str(ROOT / 'kernels' / 'common')!r})
import gpu_check

def check_all(ops, quick):
    gpu_check.expect(False, "the first")
    print("the second was reached")
    gpu_check.expect(1 + 1 == 2, "the third")

gpu_check.run("a check", check_all, None)
""")
    done = subprocess.run([sys.executable, tmp_path / "broken_check.py", BUILD, "--stand-in"], capture_output=True, text=True)
    assert done.returncode == 1
    assert "WRONG the first" in done.stdout and "the second was reached" in done.stdout
    assert "WRONG the third" not in done.stdout
    assert "1 of the results are wrong, the first: the first" in done.stderr


@pytest.mark.skipif(torch.cuda.is_available(), reason="for a machine without a GPU")
def test_without_a_gpu_the_checks_say_so():
    done = subprocess.run([sys.executable, "kernels/sao/sao_gpu_check.py", BUILD], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode != 0 and "no GPU" in done.stderr
