"""Runs OpenVINO's own benchmark_app, which its Python package installs beside the interpreter."""

import json
import pathlib
import subprocess
import sys
import tempfile


def benchmark_app(model, shape, precision, hint, threads, seconds):
    """Returns the median latency in milliseconds and the items per second of `model`, a path. `shape` is that of its one input,
    with the batch first; `precision` and `hint` are benchmark_app's own words.

    With the hint "latency" it has one inference at a time, with "throughput" as many as OpenVINO thinks best. Compiling and the
    first inference are not in the figures. The number of threads goes through a file, because the command refuses it beside a hint.
    """
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        settings = folder / "settings.json"
        settings.write_text(json.dumps({"CPU": {"INFERENCE_NUM_THREADS": threads}}))
        command = [
            pathlib.Path(sys.executable).parent / "benchmark_app", "-m", model, "-d", "CPU", "-hint", hint, "-infer_precision", precision,
            "-shape", str(list(shape)).replace(" ", ""), "-layout", "[NCHW]", "-load_config", settings, "-t", str(max(1, round(seconds))),
            "-report_type", "no_counters", "-json_stats", "-report_folder", folder,
        ]
        ran = subprocess.run(list(map(str, command)), capture_output=True, text=True)
        if ran.returncode != 0:
            raise RuntimeError(f"benchmark_app ended with {ran.returncode}: {(ran.stdout + ran.stderr)[-2000:]}")
        return parse(json.loads((folder / "benchmark_report.json").read_text()), shape[0])


def parse(report, batch):
    """The two figures of the report that benchmark_app writes with -json_stats."""
    assert int(report["configuration_setup"]["batch size"]) == batch, report["configuration_setup"]
    results = report["execution_results"]
    return float(results["latency (ms)"]), float(results["throughput"])
