"""docs/reference/metrics.md: the metric families of saccaded, scraped from a daemon that has all of them."""

import collections
import math
import os
import pathlib
import re
import shutil
import ssl
import urllib.error
import urllib.request

from certificates import Authority
from exposition import HELP, parse
from harness import DEADLINE_SECONDS, Daemon, eventually
from tools.markdown import table
from tools.reference.document import document

CONFIG = 'backend: "saccade"\nparameters { key: "architecture" value { string_value: "identity" } }\n'
# safetensors without tensors: the length of an empty header, and the header.
NO_WEIGHTS = (2).to_bytes(8, "little") + b"{}"
# A request that a model refuses.
WRONG = b'{"inputs": [{"name": "image", "datatype": "FP32", "shape": [1], "data": [1]}]}'
REQUESTS = "saccade_requests_total"
# Labels whose values come from a short list, all of which exist from the start.
LISTED = ("reason", "stage")

# Families that exist only where something is enabled: the prefix of their names, and what has to be enabled.
OPTIONAL = {
    "nv_cache_": "`response_cache`",
    "saccade_response_cache_": "`response_cache`",
    "saccade_drift": "`drift_window`",
    "saccade_shadow_promotion": "`promote`",
    "saccade_shadow_": "`shadow`",
    "saccade_certificate_": "`--tls-cert`",
    "saccade_trace_": "traces",
    "saccade_capture": "`--capture` or `--capture-sink`",
    "nv_gpu_": "NVML",
    "nv_energy_": "NVML",
    "saccade_gpu_": "NVML",
}
SECTIONS = (("Every version of a model", "model"), ("Every GPU", "gpu_uuid"), ("The daemon", None))

INTRODUCTION = """
Every metric family of `GET :8002/metrics`, with the labels and the text that the daemon itself gives. How to scrape,
alert and draw them is in [observability.md](../observability.md).

    curl -s http://127.0.0.1:8002/metrics | grep saccade_shed_total

`nv_…` are Triton's names with Triton's meanings. Histograms have the suffixes `_bucket`, `_sum` and `_count`. A family
that says "only with" exists where that is enabled: `response_cache`, `drift_window`, `shadow` or `promote` in a model's configuration,
`--tls-cert`, `--capture` or `--capture-sink`, traces by `OTEL_EXPORTER_OTLP_ENDPOINT`, or a GPU whose driver has the library NVML.

Where MIG divides a GPU, `nv_gpu_memory_…` are those of each instance that the daemon sees, whose `gpu_uuid` begins with `MIG-`. Power and
energy are the whole GPU's. NVML does not tell the utilization then.
"""


class Family:
    def __init__(self, name, kind, meaning):
        self.name, self.kind, self.meaning = name, kind, meaning
        self.labels = collections.defaultdict(set)
        self.samples = 0
        # Models with their versions.
        self.versions = set()

    def add(self, labels):
        self.samples += 1
        of = dict(labels)
        if "model" in of:
            self.versions.add((of["model"], of.get("version")))
        for label, value in labels:
            self.labels[label].add(value)

    @property
    def only_with(self):
        return next((what for prefix, what in OPTIONAL.items() if self.name.startswith(prefix)), "")

    def row(self):
        labels = ", ".join(f"`{name}`" for name in sorted(self.labels) if name != "le")
        values = "".join(f" `{label}` is {', '.join(f'`{value}`' for value in sorted(self.labels[label]))}."
                         for label in LISTED if label in self.labels)
        return [f"`{self.name}`", self.kind, labels, self.only_with, self.meaning + values]


def families(text):
    """The families of an exposition, by name."""
    samples, helps = parse(text), dict(match.groups() for match in HELP.finditer(text))
    found = {name: Family(name, kind, helps[name]) for name, kind in samples.types.items()}
    for name, labels in samples:
        base = re.sub("_(bucket|count|sum)$", "", name)
        found[base if samples.types.get(base) == "histogram" else name].add(labels)
    return found


def write_model(root, name, more=""):
    (root / name / "1").mkdir(parents=True)
    (root / name / "config.pbtxt").write_text(CONFIG + more)
    (root / name / "1" / "weights.safetensors").write_bytes(NO_WEIGHTS)


def fake_driver(folder):
    """Makes a folder in which the daemon finds the tests' fake of NVML, in place of the driver's library."""
    (library,) = pathlib.Path(os.environ["SACCADE_BUILD_DIR"]).resolve().rglob("libsaccade_fake_nvml.so")
    folder.mkdir()
    (folder / "libnvidia-ml.so.1").symlink_to(library)
    return folder


def scrape(folder):
    """The metrics of a daemon in which everything that adds a family is enabled."""
    repository = folder / "models"
    write_model(repository, "plain")
    write_model(repository, "cached", "response_cache { enable: true }\n")
    write_model(repository, "watched", 'parameters { key: "drift_window" value { string_value: "1000" } }\n')
    write_model(repository, "tried", 'version_policy { all { } }\n'
                'parameters { key: "shadow" value { string_value: "version=2,share=1" } }\n'
                'parameters { key: "promote" value { string_value: "equality >= 1 after 1000 requests" } }\n')
    shutil.copytree(repository / "tried" / "1", repository / "tried" / "2")
    authority = Authority(folder)
    pair = authority.issue("daemon")
    environment = {"LD_LIBRARY_PATH": str(fake_driver(folder / "driver")),
                   # Nothing listens there: the families exist as soon as traces are enabled.
                   "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9"}
    flags = (f"--tls-cert={pair.certificate}", f"--tls-key={pair.key}", "--plain-metrics",
             "--cache-config=local,size=1048576", f"--capture={folder / 'calls'}")
    with Daemon(repository, *flags, log_folder=folder, environment=environment) as daemon:
        daemon.await_ports()
        ready = lambda: daemon.get("/v2/health/ready", daemon.metrics_port)[0] == 200
        eventually(ready, "the models of the reference are ready")
        # Histograms of a model, and one family, have no samples until the first request.
        context = ssl.create_default_context(cafile=authority.root)
        for model in ("unknown", "plain", "cached", "watched", "tried"):
            request = urllib.request.Request(f"https://127.0.0.1:{daemon.http_port}/v2/models/{model}/infer", WRONG,
                                             {"Content-Type": "application/json"})
            try:
                urllib.request.urlopen(request, timeout=DEADLINE_SECONDS, context=context)
            except urllib.error.HTTPError as error:
                assert error.code in (400, 404), error
        return daemon.get("/metrics", daemon.metrics_port)[2]


def series(found):
    """How many samples there are, of what."""
    counts = collections.Counter()
    for family in found.values():
        if family.name == REQUESTS:
            continue
        each = next((label for label in ("model", "gpu_uuid") if label in family.labels), None)
        of = {"model": "each version of a model", "gpu_uuid": "each GPU", None: "the daemon"}[each]
        if family.only_with and each != "gpu_uuid":
            of += f", with {family.only_with}" if each else f" with {family.only_with}"
        ones = {"model": family.versions, "gpu_uuid": family.labels.get("gpu_uuid", ()), None: ()}
        # A GPU may lack some of them, so this is their maximum.
        counts[of] += math.ceil(family.samples / max(1, len(ones[each])))
    return counts


def page(folder):
    found = families(scrape(folder))
    sections, left = [], list(found.values())
    for heading, label in SECTIONS:
        here = [family for family in left if label is None or label in family.labels]
        left = [family for family in left if family not in here]
        rows = [family.row() for family in sorted(here, key=lambda family: family.name)]
        sections.append((heading, table(["name", "type", "labels", "only with", "meaning"], rows)))
    rows = [[of, str(count)] for of, count in sorted(series(found).items())]
    rows.append([f"`{REQUESTS}`", "one for each model version, protocol and status code that occurred"])
    sections.append(("How many series there are", "What clients send makes no series beyond these.\n\n" +
                     table(["of", "samples"], rows)))
    return document("Metrics", INTRODUCTION, sections)
