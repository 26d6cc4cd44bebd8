"""The part "precision": JPEGs in, boxes or labels out, in each precision of the CPU, beside what decoding and the passes allow."""

import dataclasses
import json
import pathlib
import shutil
import statistics
import subprocess
import typing

from tools.bench_server import servers
from tools.bench_server.bench import tenths, times
from tools.bench_server.load import LoadFailed
from tools.processor import spent

DEMO = pathlib.Path("models/demo")
CLIENTS = 16
# The sizes of a picture that the clients send: a photograph of a telephone, and a small one.
SIZES = ((640, 480), (4000, 3000))
TITLE = "JPEG in, boxes or labels out"
HEAD = ["model", "picture", "precision", "decoding ms", "pass ms", "both ms", "pictures/s", "against fp32", "CPU ms a picture",
        "of a batch", "limit", "against the limit"]


class Case(typing.NamedTuple):
    """A model: its folder, or None for a network without training; the demo's pictures that are sent; further options."""

    source: pathlib.Path | None
    pictures: str
    options: dict = {}


CASES = {"sanet_shapes": Case(DEMO / "repository" / "sanet_shapes", "pictures"),
         "detector": Case(DEMO / "repository" / "detector", "scenes"),
         # Decodes at a reduced size, where decoding is the limit.
         "detector_reduced": Case(DEMO / "repository" / "detector", "scenes", {"reduced_jpeg": "true"}),
         "segmenter": Case(DEMO / "repository" / "segmenter", "scenes"),
         "resnet50": Case(None, "pictures")}


@dataclasses.dataclass(frozen=True)
class Told:
    """What `saccade bench --json` says of one load, and the daemon's processor time for it: milliseconds for each picture."""

    decode: float
    infer: float
    rate: float
    batch: float
    processor: float

    @classmethod
    def of(cls, document, processor_seconds):
        if document["failures"] or not document["answers"]:
            raise LoadFailed(f"{document['model']}: no answer, or requests that failed: {document['failures']}")
        stages, batch = document["stages_ms"], document["mean_batch_size"]
        return cls(stages["decode"]["p50"], stages["infer"]["p50"] / batch, document["answers_per_second"], batch,
                   1000 * processor_seconds / document["answers"])


def median(rounds):
    """The median of each figure over the rounds."""
    return Told(*(statistics.median(getattr(told, field.name) for told in rounds) for field in dataclasses.fields(Told)))


def cells(alone, loaded, base):
    """Cells of one precision: `alone` is one client's, `loaded` that of many, `base` the latter in fp32."""
    # Decoding is measured without load: under load, its time includes that in which other processes have its core.
    limit = 1000 / max(alone.decode, loaded.infer)
    return [tenths(alone.decode), tenths(alone.infer), tenths(alone.decode + alone.infer), tenths(loaded.rate),
            times(loaded.rate / base.rate), tenths(loaded.processor), tenths(loaded.batch),
            "decoding" if alone.decode > loaded.infer else "passes", times(loaded.rate / limit)]


def table_rows(name, picture, found):
    """Rows of a model and a size of pictures; `found` has the pair of measurements of each precision, fp32 first."""
    base = found["fp32"][1]
    return [[name, picture, precision, *cells(alone, loaded, base)] for precision, (alone, loaded) in found.items()]


def asked(bench, daemon, model, pictures, clients, seconds):
    before = spent(daemon.process)
    command = [bench.build / "bin" / "saccade", "bench", "--url", daemon.url, "--model", model, "--concurrency", clients,
               "--seconds", seconds, "--json", "-q", pictures]
    ran = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    # It prints its figures also if requests failed.
    if not ran.stdout:
        raise LoadFailed(f"{model}: {ran.stderr.strip()}")
    return Told.of(json.loads(ran.stdout), spent(daemon.process) - before)


def write_pictures(source, folder, size):
    """Writes the pictures of `source` and their mirror images as JPEGs of this size; quantizing wants 8. Returns `folder`."""
    from PIL import Image, ImageOps

    folder.mkdir(parents=True)
    for path in sorted(source.iterdir()):
        with Image.open(path) as opened:
            picture = opened.convert("RGB").resize(size, Image.BICUBIC)
        picture.save(folder / f"{path.stem}.jpg", quality=90)
        ImageOps.mirror(picture).save(folder / f"{path.stem}-mirrored.jpg", quality=90)
    return folder


def add_model(root, name, source, options):
    """Adds a copy of a model with further options; its name in its configuration becomes the folder's."""
    folder = root / name
    shutil.copytree(source, folder)
    config = folder / "config.pbtxt"
    lines = [line for line in config.read_text().splitlines() if not line.startswith("name:")]
    lines += [f'parameters {{ key: "{key}" value {{ string_value: "{value}" }} }}' for key, value in options.items()]
    config.write_text("\n".join(lines) + "\n")
    return folder


def untrained(bench, name):
    """Writes torchvision's ResNet-50 with random weights as a model; returns its folder."""
    import torch

    from models.reference import build
    from models.reference.served import save

    options = {"attention": "none"}
    torch.manual_seed(1)
    root = bench.repository(f"untrained-{name}")
    servers.write_model(root, name, {"architecture": "expatt_resnet50", **options})
    save(build("expatt_resnet50", **options).eval(), root / name / "1" / "weights.safetensors")
    return root / name


def quantize(bench, folder, pictures):
    # All layers that can be: what is measured is the time.
    command = [bench.build / "bin" / "saccade", "quantize", "--model", folder, "--pictures", pictures, "--keep-within", "100%"]
    ran = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    if ran.returncode != 0:
        raise LoadFailed(f"saccade quantize --model {folder}: {ran.stderr.strip()}")


def precisions():
    """Those in which this machine's CPU serves, fp32 first."""
    from models.reference.served import multiplies_bfloat16, multiplies_int8

    return ["fp32", *(["bf16"] if multiplies_bfloat16() else []), *(["int8"] if multiplies_int8() else [])]


def measured(bench, daemon, name, pictures, chosen):
    """The precisions take turns; returns the medians of one client's and of many clients' loads."""
    rounds = {precision: ([], []) for precision in chosen}
    seconds = bench.seconds / bench.rounds
    for _ in range(bench.rounds):
        for precision, (alone, loaded) in rounds.items():
            model = f"{name}_{precision}"
            alone.append(asked(bench, daemon, model, pictures, 1, seconds))
            loaded.append(asked(bench, daemon, model, pictures, CLIENTS, seconds))
    return {precision: (median(alone), median(loaded)) for precision, (alone, loaded) in rounds.items()}


def by_precision(bench):
    """Measures the whole daemon in each precision, with one core for decoding and one for the network."""
    chosen, rows = precisions(), []
    folders = {(source, size): write_pictures(DEMO / source, bench.folder / f"{source}-{size[0]}", size)
               for source in sorted({case.pictures for case in CASES.values()}) for size in SIZES}
    for name, case in CASES.items():
        root = bench.repository(f"precision-{name}")
        original = case.source or untrained(bench, name)
        for precision in chosen:
            folder = add_model(root, f"{name}_{precision}", original, {**case.options, "precision": precision})
            if precision == "int8":
                quantize(bench, folder, folders[case.pictures, SIZES[0]])
        with servers.daemon(bench.build, root, "--decode-threads", 1, "--threads-per-instance", 1) as daemon:
            for size in SIZES:
                found = measured(bench, daemon, name, folders[case.pictures, size], chosen)
                rows += table_rows(name, f"{size[0]} x {size[1]}", found)
    bench.page.table(TITLE, HEAD, rows,
                     f"`decoding` and `pass` are one client's; {CLIENTS} clients give the other columns. Decoding and computing have one "
                     "thread each, so that the slower of them is the limit: 1000 / decoding, or 1000 / the pass of a batch for each of its "
                     "pictures. `resnet50` is not trained. int8 has every layer that can be quantized.")
