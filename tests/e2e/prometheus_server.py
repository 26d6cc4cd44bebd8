"""Debian's Prometheus, which scrapes a daemon."""

import json
import os
import pathlib
import re
import subprocess
import sys
import urllib.error
import urllib.parse
import urllib.request

from harness import DEADLINE_SECONDS, die_with_parent, eventually

PROGRAMS = pathlib.Path(sys.prefix) / "prometheus" / "usr" / "bin"

CONFIGURATION = """\
global: {scrape_interval: 1s, scrape_timeout: 1s}
scrape_configs:
  - job_name: saccade
    static_configs: [{targets: ["127.0.0.1:PORT"]}]
"""


class Prometheus:
    """A running Prometheus with the daemon as its only target; ends with the block."""

    def __init__(self, folder, port):
        config = folder / "prometheus.yml"
        config.write_text(CONFIGURATION.replace("PORT", str(port)))
        checked = subprocess.run([PROGRAMS / "promtool", "check", "config", config], capture_output=True, text=True)
        assert checked.returncode == 0, checked.stdout + checked.stderr
        self._log_path = folder / "prometheus.log"
        self._log = open(self._log_path, "wb")
        self._process = subprocess.Popen(
            [PROGRAMS / "prometheus", f"--config.file={config}", f"--storage.tsdb.path={folder / 'data'}",
             "--web.listen-address=127.0.0.1:0", "--log.level=info",
             "--enable-feature=exemplar-storage"],
            stdout=self._log, stderr=self._log, preexec_fn=die_with_parent)

    def __enter__(self):
        try:
            eventually(self._find_port, "prometheus listens")
            eventually(self._is_ready, "prometheus is ready")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        self._process.kill()
        self._process.wait()
        self._log.close()

    def _find_port(self):
        """Finds the port of the process, which chose a free one and does not report it."""
        assert self._process.poll() is None, self._log_path.read_text()
        sockets = set()
        for entry in pathlib.Path(f"/proc/{self._process.pid}/fd").iterdir():
            try:
                match = re.fullmatch(r"socket:\[(\d+)\]", os.readlink(entry))
            except FileNotFoundError:
                continue
            if match:
                sockets.add(match[1])
        for line in pathlib.Path("/proc/net/tcp").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and fields[9] in sockets:
                self.port = int(fields[1].split(":")[1], 16)
                return True
        return False

    def _is_ready(self):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/-/ready", timeout=DEADLINE_SECONDS):
                return True
        except urllib.error.HTTPError:
            return False

    def _ask(self, what, **parameters):
        url = f"http://127.0.0.1:{self.port}/api/v1/{what}?{urllib.parse.urlencode(parameters)}"
        with urllib.request.urlopen(url, timeout=DEADLINE_SECONDS) as answer:
            found = json.load(answer)
        assert found["status"] == "success" and not found.get("warnings")
        return found["data"]

    def exemplars(self, expression, start, end):
        """[(the series' labels, exemplar)] between two times."""
        found = self._ask("query_exemplars", query=expression, start=start, end=end)
        return [(series["seriesLabels"], exemplar) for series in found for exemplar in series["exemplars"]]

    def query(self, expression):
        """Current values by labels, which include the metric's name."""
        found = self._ask("query", query=expression)
        assert found["resultType"] == "vector"
        return {
            frozenset((key, value) for key, value in one["metric"].items() if key not in ("instance", "job")):
                float(one["value"][1])
            for one in found["result"]
        }
