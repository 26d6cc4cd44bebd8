"""Tests of libsaccade_cuda.so and of its checks, on a machine without a GPU."""

import json
import os
import pathlib
import subprocess
import sys

import pytest
import torch

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


def test_the_checks_of_a_gpu_run_to_their_end(tmp_path):
    """A rehearsal on the CPU: what fails is collected, each time is written, and the report says what there was."""
    command = [sys.executable, "tools/gpu", "--stand-in", "--quick", "--seconds", "550", "--parts", "checks,times",
               "--operators", "sao,nms", "--most", "2", "--build", str(BUILD), "--out", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "2"})
    assert done.returncode == 0, done.stderr
    report = (tmp_path / "kernels-gpu.md").read_text()
    for part in ("checks of sao", "checks of nms", "times of sao", "times of nms"):
        assert f"| {part} | passed |" in report
    rows = [json.loads(line) for line in (tmp_path / "times.jsonl").read_text().splitlines()]
    assert len(rows) == 4 and all(row["us"]["saccade"] > 0 for row in rows)
    assert report.count("| sao (") == 2


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
