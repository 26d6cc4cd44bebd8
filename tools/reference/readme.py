"""What commands print in client/README.md: its sessions, run against the demo's models and a network of actions with random
weights."""

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading

import numpy
import pictures
from certificates import openssl
from tiny_models import tiny_actions, write_model

from harness import DEMO_REPOSITORY, ROOT, Daemon, binary
from tools.reference.session import COMMAND, printed

README = ROOT / "client" / "README.md"
SESSION = re.compile(r"^```\n(?P<session>\$ .*?)^```", re.MULTILINE | re.DOTALL)
ADDRESSES = {"127.0.0.1:8001": "grpc_address"}
FRAMES = 40


def write_clip(folder):
    """A picture that moves sideways, as a video and as frames."""
    wide = pictures.pixels(1, 96, 48)
    frames = [numpy.roll(wide, i, axis=1)[:, :64] for i in range(FRAMES)]
    (folder / "match.avi").write_bytes(pictures.video(frames, 10))


def write_repository(root):
    for model in DEMO_REPOSITORY.iterdir():
        shutil.copytree(model, root / model.name)
    write_model(root, "localizer", tiny_actions(), max_batch_size=4)


def write_raw_volume(folder):
    volume = numpy.linspace(0, 4095, 12 * 48 * 48).astype("<u2").reshape(12, 48, 48)
    (folder / "worm.raw").write_bytes(volume.tobytes())


class Sessions:
    """Runs the page's sessions. `folder` is empty, and gets their files."""

    def __init__(self, folder):
        self.folder = folder
        (folder / "models").symlink_to(ROOT / "models")
        write_clip(folder)
        write_raw_volume(folder)
        (folder / "repository").mkdir()
        write_repository(folder / "repository")

    def watched(self, command, daemon):
        """Two looks of `status --watch`, while a benchmark asks a model."""
        url = f"--url={daemon.grpc_address}"
        load = subprocess.Popen([binary("saccade"), "bench", url, "--model=detector", ROOT / "models" / "demo" / "scenes",
                                 "--concurrency=4", "--seconds=60"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        watch = subprocess.Popen([binary("saccade"), *command.split()[1:], url], stdout=subprocess.PIPE, text=True)
        # Nothing that it prints ends it, so a look too few must not wait for ever.
        limit = threading.Timer(30, watch.kill)
        limit.start()
        try:
            looks, text = 0, ""
            for line in watch.stdout:
                looks += line.startswith("127.0.0.1")
                if looks > 2:
                    break
                text += line.replace(daemon.grpc_address, "127.0.0.1:8001")
            return text.rstrip("\n") + "\n"
        finally:
            limit.cancel()
            for process in (watch, load):
                process.kill()
                process.wait()

    def untrusted(self, command):
        """A daemon whose certificate signed itself."""
        key, certificate = self.folder / "key.pem", self.folder / "certificate.pem"
        openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
                "-keyout", str(key), "-out", str(certificate), "-subj", "/CN=saccade.example")
        key.chmod(0o600)
        flags = [f"--tls-cert={certificate}", f"--tls-key={key}"]
        with Daemon(self.folder / "repository", *flags, log_folder=self.folder) as daemon:
            daemon.await_ports()
            return self.ended(command, f"localhost:{daemon.grpc_port}", "localhost:8001")

    def ended(self, command, used, shown):
        """What a command prints that fails."""
        done = subprocess.run([binary("saccade"), *command.replace(shown, used).split()[1:]], capture_output=True, text=True)
        if done.returncode == 0:
            raise RuntimeError(f"'{command}' did not fail: {done.stdout}")
        return (done.stdout + done.stderr).replace(used, shown)

    def page(self):
        with Daemon(self.folder / "repository", log_folder=self.folder) as daemon:
            daemon.await_ready()
            addresses = {shown: getattr(daemon, used) for shown, used in ADDRESSES.items()}

            def output(command):
                if "--watch" in command:
                    return self.watched(command, daemon)
                if "--tls" in command:
                    return self.untrusted(command)
                return printed(command, self.folder, addresses)

            def made(found):
                commands = [command for command, _ in COMMAND.findall(found["session"])]
                return "```\n" + "".join(f"$ {command}\n{output(command)}" for command in commands) + "```"

            return SESSION.sub(made, README.read_text())


def readme():
    """The page with the output of today."""
    with tempfile.TemporaryDirectory() as folder:
        return Sessions(pathlib.Path(folder)).page()


def write():
    README.write_text(readme())
