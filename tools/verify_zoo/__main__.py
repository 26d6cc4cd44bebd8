"""./dev verify-zoo [--small] [--write FILE] [NETWORK...]: `python -m saccade import` and `verify` for each network, with random
weights. The exit code is 1 if one cannot be imported or differs by more than is allowed."""

import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

import PIL.Image
from saccade.imports import random_weights

from models.bench import bench_models
from tools.verify_zoo import networks

SIZES = [(301, 467), (467, 301), (240, 320), (97, 151), (480, 640)]
# lucid-yolo cuts masks on its input of 640 x 640, and gives each pixel of the picture the nearest one of those. The daemon computes masks at
# the picture's own pixels. They are the same ones in pictures that are not scaled.
LUCIDS_SIZES = [(640, 640), (480, 640), (640, 480), (427, 640), (640, 361)]
# A mask ends at its box. If the box's edge lies at a pixel's centre but for rounding, the mask has a row more or less, which is much of a thin one.
LUCIDS_TOLERANCE = ["--mask-tolerance", 0.2]
SEED = 3
START, END = "<!-- from ./dev verify-zoo -->", "<!-- end -->"
COLUMNS = {"box": "{:.3f}", "score": "{:.1e}", "mask": "{:.2%}", "pixels": "{:.2%}", "depth": "{:.1e}"}
HEAD = """| network | head | results compared | box, px | score | mask | label map | depth |
|---|---|---|---|---|---|---|---|
"""


def write_pictures(folder: pathlib.Path, sizes: list[tuple[int, int]]) -> None:
    """Smooth shapes, because what a filter makes of noise is no matter of the network."""
    folder.mkdir()
    for seed, (height, width) in enumerate(sizes):
        shown = 255 * random_weights.pictures(1, height, width, seed)[0]
        PIL.Image.fromarray(shown.byte().permute(1, 2, 0).numpy()).save(folder / f"{seed}.png")


def command(kind: str, *arguments: object) -> subprocess.CompletedProcess:
    # The one source that the package itself does not have.
    program = "tools.verify_zoo.lucid" if kind == "lucid" else "saccade"
    words = [sys.executable, "-m", program, *map(str, arguments)]
    # OpenMP's threads sleep as soon as in the daemon, so that both processes do not wait for each other's spinning threads.
    variables = {**bench_models.environment(pathlib.Path(os.environ["SACCADE_BUILD_DIR"])), "HF_HUB_OFFLINE": "1"}
    return subprocess.run(words, capture_output=True, text=True, timeout=900, env=variables)


def why(done: subprocess.CompletedProcess) -> str:
    lines = (done.stderr.strip() or done.stdout.strip()).splitlines()
    return "\n".join(lines[-12:])


def verify(source: str, work: pathlib.Path, saccaded: str) -> tuple[dict | None, str]:
    """Returns the differences, or None and why there are none."""
    kind, _, name = source.partition(":")
    if kind == "transformers":
        source = f"transformers:{networks.write_transformers(work / 'folders', name)}"
    model = work / "models" / re.sub(r"[^A-Za-z0-9_]", "_", f"{kind}_{name}")
    done = command(kind, "import", source, "--random", SEED, "-o", model)
    if done.returncode != 0:
        return None, why(done)
    shown, more = ("lucids", LUCIDS_TOLERANCE) if kind == "lucid" else ("pictures", [])
    done = command(kind, "verify", model, "--pictures", work / shown, *more, "--saccaded", saccaded, "--start-seconds", 600, "--json")
    try:
        found = json.loads(done.stdout)
    except ValueError:
        return None, why(done)
    described = json.loads((model / "saccade.json").read_text())
    return {**found, "head": described["head"]["kind"]}, ""


def row(source: str, found: dict) -> str:
    cells = [form.format(found[name]) if found[name] is not None else "" for name, form in COLUMNS.items()]
    return "| " + " | ".join([f"`{source}`", found["head"], str(found["compared"]), *cells]) + " |"


def write(path: pathlib.Path, source: str, new: str | None) -> None:
    """Replaces the row of `source`, or removes it if `new` is None. Rows of other networks stay, so that they may be compared one by one."""
    before, _, rest = path.read_text().partition(START)
    inside, _, after = rest.partition(END)
    rows = [line for line in inside.splitlines() if line.startswith("| `") and not line.startswith(f"| `{source}` |")]
    rows += [new] if new is not None else []
    path.write_text(f"{before}{START}\n\n{HEAD}" + "\n".join(sorted(rows)) + f"\n\n{END}{after}")


def main() -> int:
    parser = argparse.ArgumentParser(prog="./dev verify-zoo")
    parser.add_argument("networks", nargs="*", metavar="NETWORK", help="torchvision:NAME, timm:NAME, transformers:NAME or lucid:NAME")
    parser.add_argument("--small", action="store_true", help=f"only {', '.join(networks.SMALL)}")
    parser.add_argument("--write", type=pathlib.Path, metavar="FILE", help="write the rows of networks that are within the tolerances into the table of this document; others stay")
    given = parser.parse_args()
    chosen = given.networks or (networks.SMALL if given.small else networks.SMALL + networks.OTHERS)
    saccaded = os.path.join(os.environ["SACCADE_BUILD_DIR"], "bin", "saccaded")
    bad = []
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        write_pictures(work / "pictures", SIZES)
        write_pictures(work / "lucids", LUCIDS_SIZES)
        for source in chosen:
            started = time.monotonic()
            found, reason = verify(source, work, saccaded)
            seconds = time.monotonic() - started
            good = found is not None and found["within"]
            if given.write is not None:
                write(given.write, source, row(source, found) if good else None)
            if not good:
                bad.append(source)
            if found is None:
                print(f"FAILED  {source} ({seconds:.0f} s): {reason}", flush=True)
                continue
            unmatched = f" {found['unmatched']} unmatched" if found["unmatched"] else ""
            print(f"{'OK     ' if good else 'DIFFERS'} {row(source, found)}{unmatched} ({seconds:.0f} s)", flush=True)
    print(f"{len(chosen)} networks, {len(bad)} of them differ or cannot be imported{': ' if bad else ''}{', '.join(bad)}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
