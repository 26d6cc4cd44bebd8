"""What commands print in docs/your-own-model.md: the page is followed from its first block to its last one, in a folder of
its own, with the files that it writes."""

import datetime
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import numpy
import onnx_files
import torch
import torchvision

from harness import ROOT, Daemon, binary, eventually
from tools.reference.session import COMMAND

PAGE = ROOT / "docs" / "your-own-model.md"
BLOCK = re.compile(r"^```(?P<language>\w*)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
# The files that a block is written into, by the paragraph before it.
NAMED = re.compile(r"`(my-[\w/-]+/(?:config\.pbtxt|saccade\.json))`")
# Commands that are shown without what they print.
INDENTED = re.compile(r"(?:^    .+\n)+", re.MULTILINE)
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
PORTS = {"127.0.0.1:8000": "http_port", "127.0.0.1:8001": "grpc_port"}
# Blocks whose figures are those of the moment.
MEASURED = re.compile(r"^(?:\$ saccade bench|\$ tools=|I loading model)(?:.*\n)*?```$", re.MULTILINE)
# A busy machine sends requests late or not at all, and the benchmark says so.
LATE = re.compile(r"^(?:[\d,]+ requests? (?:was|were) sent late, |not sent: ).*\n", re.MULTILINE)
DATED = re.compile(r"(Times are from two busy cores, on )[\d-]+(\.)")
# Written by ./dev verify-zoo, or by a program that downloads weights; not followed here.
ELSEWHERE = ("rcnn: ",)
PERF_ANALYZER = "~/.cache/saccade/python/perf_analyzer"


def words(line):
    """A line without its figures, to find it again."""
    return re.sub(r"(?<!\w)[\d.,]+", "#", line).split()


def elided(shown, printed):
    """Of what was printed, the lines that the page shows; "..." stands for the others."""
    lines, left = [], iter(printed.splitlines())
    if "...\n" not in shown:
        return printed
    for line in shown.splitlines():
        if line == "...":
            lines.append(line)
            continue
        found = next((new for new in left if words(new)[:3] == words(line)[:3]), None)
        if found is None:
            raise RuntimeError(f"nothing like '{line}' was printed: {printed}")
        lines.append(found.rstrip())
    return "\n".join(lines) + "\n"


def write_weights(folder):
    """The files that `saccade init` is shown with: of a network that was saved as a module's part, and a graph."""
    torch.manual_seed(1)
    network = torchvision.models.resnet18(weights=None, num_classes=3)
    torch.save({f"model.{name}": tensor for name, tensor in network.state_dict().items()}, folder / "resnet18.pt")
    torch.save({re.sub(r"^fc\.", "head.", name): tensor for name, tensor in network.state_dict().items()},
               folder / "renamed.pt")
    (folder / "names.txt").write_text("circle\ncross\nstripes\n")
    weight = numpy.zeros((5, 3, 4, 4), numpy.float32)
    (folder / "net.onnx").write_bytes(onnx_files.classifier(weight, weight[:, 0, 0, 0]))


def write_triton_repository(folder):
    """A program with fields that are ignored, and a platform that Saccade does not have."""
    script, net = folder / "my-triton" / "script", folder / "my-triton" / "net"
    (script / "1").mkdir(parents=True)
    (net / "1").mkdir(parents=True)
    torch.jit.script(torch.nn.ReLU()).save(script / "1" / "model.pt")
    (script / "config.pbtxt").write_text(
        'platform: "pytorch_libtorch"\nmax_batch_size: 8\n'
        'input [ { name: "x" data_type: TYPE_FP32 dims: [ 3 ] } ]\noutput [ { name: "y" data_type: TYPE_FP32 dims: [ 3 ] } ]\n'
        'optimization { priority: PRIORITY_MAX }\nmetric_tags { key: "team" value: "vision" }\n')
    (net / "config.pbtxt").write_text('platform: "tensorrt_plan"\nmax_batch_size: 8\n')
    (net / "1" / "model.plan").write_bytes(b"plan")


class Follower:
    """Follows the page. `folder` is empty, and gets all that the page writes."""

    def __init__(self, folder):
        self.folder = folder
        self.text = PAGE.read_text()
        self.daemon = None
        self.output = ""
        (folder / "models").symlink_to(ROOT / "models")
        (folder / "init").mkdir()
        write_weights(folder / "init")
        write_triton_repository(folder)

    def environment(self):
        path = f"{binary('saccade').resolve().parent}:{os.environ['PATH']}"
        # Without the search for the compiler's features, half of the time in which a package is made.
        made = {**os.environ, "PATH": path, "PYTHON": sys.executable, "PYTHONPATH": str(ROOT), "TORCHINDUCTOR_VEC_ISA_OK": "0"}
        if self.daemon:
            made["SACCADE_URL"] = self.daemon.grpc_address
        return made

    def with_ports(self, text, back=False):
        for shown, port in PORTS.items():
            if self.daemon:
                used = f"127.0.0.1:{getattr(self.daemon, port)}"
                text = text.replace(used, shown) if back else text.replace(shown, used)
        return text

    def relative(self, text):
        return text.replace(f"{self.folder}/", "")

    def run(self, command, folder=None, codes=(0,)):
        installed = pathlib.Path(sys.executable).parent.parent / "perf_analyzer"
        command = self.with_ports(command).replace(PERF_ANALYZER, str(installed))
        done = subprocess.run(["bash", "-c", command], cwd=folder or self.folder, env=self.environment(), text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if done.returncode not in codes:
            raise RuntimeError(f"'{command}' ended with {done.returncode}: {done.stdout}")
        return LATE.sub("", self.with_ports(self.relative(done.stdout), back=True))

    def serve(self, repository, *flags):
        self.daemon = Daemon(self.folder / repository, *flags, log_folder=self.folder).await_ports()
        # Warming up a large detector may take a minute.
        self.run("saccade status --wait 600")
        if self.daemon.process.poll() is not None:
            raise RuntimeError(f"the daemon has ended: {self.daemon.log()}")

    def stop(self):
        if self.daemon:
            self.daemon.close()
        self.daemon = None

    def session(self, body):
        """The commands with what they print."""
        made, assigned = "", ""
        for command, shown in COMMAND.findall(body):
            if re.fullmatch(r"\w+=\S+", command):
                assigned += f"{command}; "
                made += f"$ {command}\n"
                continue
            folder = self.folder / "init" if command.startswith("saccade init") else None
            # What these print may be what is wrong.
            codes = (0, 1) if "--check-config" in command or folder else (0,)
            made += f"$ {command}\n{elided(shown, self.run(assigned + command, folder, codes))}"
        return made

    def checked(self, body):
        """The check of the models, of which the page lets one have a wrong number of classes at first."""
        config = self.folder / "my-models" / "shapes" / "config.pbtxt"
        right = config.read_text()
        if "classes; give one" in body:
            config.write_text(right.replace('"classes" value { string_value: "3"', '"classes" value { string_value: "4"'))
        made = self.session(body)
        config.write_text(right)
        return made

    def log(self, body, before):
        """What the daemon logs of the commands before the block, without times, until it says what ends the block."""
        known = len(self.daemon.log_lines())
        for command in INDENTED.findall(before)[-1].splitlines():
            self.run(command)
        # The words before the first field of the last line.
        last = re.match(r"[\w ]+(?= \w+=)", body.splitlines()[-1])[0]
        made = lambda: [line.partition(" ")[2] for line in self.daemon.log_lines()[known:] if "model=shapes" in line]
        eventually(lambda: any(line.startswith(last) for line in made()), f"the daemon logs '{last}'")
        lines = made()
        end = next(i for i, line in enumerate(lines) if line.startswith(last))
        return self.relative("\n".join(lines[: end + 1]) + "\n")

    def python(self, code):
        """Runs the code; returns what it prints. A client's code has its daemon."""
        if "InferenceServerClient" in code:
            self.serve("my-programs", "--allow-executable-models")
        (self.folder / "example.py").write_text(self.with_ports(code))
        try:
            return self.run('"$PYTHON" example.py')
        finally:
            self.stop()

    def block(self, found):
        body, before = found["body"], self.text[:found.start()]
        heading = HEADING.findall(before)[-1]
        paragraph = before.rstrip().rsplit("\n\n", 1)[-1]
        named = NAMED.findall(paragraph) if paragraph.endswith(":") else []
        if heading == "Serve it" and not self.daemon:
            self.serve("my-models", "--model-control-mode=poll", "--repository-poll-secs=2")
        if found["language"] == "python":
            if "`train.py`" in paragraph:
                (self.folder / "train.py").write_text(body)
            else:
                self.output = self.python(body)
        elif named and not body.startswith("$ "):
            for name in named:
                (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
                (self.folder / name).write_text(body)
        elif found["language"] == "json":
            json.loads(body)  # the description of a model that is not on the page
        elif body.startswith("backend: ") and heading == "Train one":
            (self.folder / "my-models" / "shapes" / "config.pbtxt").write_text(body)
        elif paragraph.endswith("```") and not body.startswith("$ "):
            body = self.output
        elif body.startswith("I "):
            body = self.log(body, before)
        elif heading == "Check it":
            body = self.checked(body)
        elif body.startswith("$ saccade classify") and not self.daemon:
            self.serve("my-programs", "--allow-executable-models")
            body = self.session(body)
            self.stop()
        elif body.startswith("$ "):
            body = self.session(body)
        elif not body.startswith(ELSEWHERE):
            raise RuntimeError(f"{PAGE.name} has a block that its test does not follow, under '{heading}': {body}")
        return f"```{found['language']}\n{body}```"

    def page(self):
        try:
            return BLOCK.sub(self.block, self.text)
        finally:
            self.stop()


def page(folder):
    """The page with the output of today."""
    return Follower(folder).page()


def write():
    with tempfile.TemporaryDirectory() as folder:
        text = page(pathlib.Path(folder))
    PAGE.write_text(DATED.sub(rf"\g<1>{datetime.date.today()}\g<2>", text))
