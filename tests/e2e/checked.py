"""What --check-config says of each model of a repository."""

import itertools
import re

from harness import run_to_end

BEGINNING = re.compile(r"(OK|WARNING|ERROR) +[\w.-]+")


class Checked:
    """The output of --check-config for a repository."""

    def __init__(self, root, *flags):
        ended = run_to_end("--check-config", f"--model-repository={root}", *flags)
        self.code, self.lines = ended.returncode, ended.stdout.splitlines()
        assert self.code in (0, 1), f"exit {self.code}:\n{ended.stderr[-3000:]}"
        assert re.fullmatch(r"\d+ checked, \d+ with errors", self.lines[-1])

    def of(self, name):
        """Returns OK or ERROR, and the text about the model."""
        begins = re.compile(rf"(OK|ERROR) +{re.escape(name)}( version \d+)?(:| \()")
        (at,) = [number for number, line in enumerate(self.lines) if begins.match(line)]
        more = itertools.takewhile(lambda line: not BEGINNING.match(line), self.lines[at + 1 : -1])
        return self.lines[at].split()[0], "\n".join((self.lines[at], *more))

    def error_of(self, name):
        """Returns the text about the model, which has to be an error."""
        state, text = self.of(name)
        assert state == "ERROR" and self.code == 1, text
        return text

    def warnings_of(self, name):
        return [line for line in self.lines if re.match(rf"WARNING +{re.escape(name)}( version \d+)?:", line)]
