"""docs/reference/flags.md: the flags of saccaded, as the program lists them, with the ranges that it enforces."""

import dataclasses
import re

from harness import run_to_end
from tools.markdown import table
from tools.reference.document import document

# Headings, and the flags under them, as patterns of whole names. A flag without a heading of its own comes last.
SECTIONS = (
    ("Which models are served",
     "model-.*|load-model|repository-.*|exit-on-error|strict-.*|disable-.*|allow-(executable-models|drills)|"
     "check-config|warm-up-.*|unload-.*"),
    ("Where the daemon listens", "host|(grpc|http|metrics)-(address|port)|page"),
    ("Who may call", "tls-.*|token-file|plain-metrics|insecure|allow-shared-memory|allowed-hosts"),
    ("What a connection may do",
     "max-connections.*|max-streams-per-connection|max-resets-.*|max-health-.*|(head|idle)-timeout-.*|min-transfer-rate"),
    ("How much one request may send", "max-(message|picture|stream|head)-.*|upload-.*|send-.*"),
    ("How much may be in the daemon", "max-(inflight|decoded|queue)-.*|decode-queue|client-.*"),
    ("Cores", "cores|state-folder|threads-.*|(decode|network)-threads"),
    ("Cached answers", "cache-config|response-cache-.*"),
    ("Shutdown and hung passes", "lame-.*|drain-.*|stall-.*"),
    ("Logs", "log-.*|access-log.*"),
    ("Captured calls", "capture.*"),
    ("gRPC connections", "grpc-(keepalive|http2|max)-.*"),
    ("Other flags", ".*"),
)
RANGE = re.compile(r"expected a number (?:from (\S+) to (\S+)|of at least (\S+))$")

INTRODUCTION = """
Every flag of `saccaded`, with its default and the values that it accepts. The guide is
[operations.md](../operations.md).

    saccaded --grpc-port=8001            # on the command line
    SACCADED_GRPC_PORT=8001 saccaded     # in the environment: SACCADED_, then the name in capitals, with _ for -
    saccaded --config saccaded.conf      # in a file, one grpc-port=8001 per line

If a flag is given in several of these places, the first one in this list wins. A flag without a value is switched on
by its name (`--page=false` and the like are switched off by their value). Values: `S` seconds, `MS` milliseconds, `R` a
number per second. The flags of `tritonserver` that the daemon also understands have
[a table of their own](../compatibility.md#command-line).
"""


def shown(number):
    return f"{int(number):,}" if number == int(number) else str(number)


@dataclasses.dataclass
class Flag:
    names: list
    value: str
    default: str
    needs: str
    excludes: str
    meaning: str
    # What the daemon says of the value -1; empty if the flag takes no numbers.
    error: str

    @property
    def name(self):
        return self.names[0].removeprefix("--")

    def range(self):
        """The values that the daemon accepts, from its error for one that it does not; "" if the flag takes no numbers."""
        if not self.error:
            return ""
        found = RANGE.search(self.error)
        assert found, f"{self.names[0]}: what is said of -1 states no range: {self.error}"
        low, high, least = (float(number) if number else None for number in found.groups())
        return f"from {shown(least)}" if least is not None else f"{shown(low)} to {shown(high)}"

    def row(self):
        names = ", ".join(f"`{name}`" for name in self.names)
        default = self.default
        if self.value == "true|false":
            default = {"1": "true", "0": "false"}.get(default, default)
        elif default.isdigit() and self.value != "PORT":
            default = f"{int(default):,}"
        notes = "".join(f". {what} {', '.join(f'`{one}`' for one in flags.split(','))}"
                        for what, flags in (("Needs", self.needs), ("Not together with", self.excludes)) if flags)
        return [names, f"`{self.value}`" if self.value else "", default, self.range(), self.meaning + notes]


def parse(lines):
    """The flags in the output of --flag-table, a line each."""
    flags = []
    for line in lines.splitlines():
        names, value, *rest = line.split("\t")
        # CLI11 adds the validator's name after a colon.
        flags.append(Flag(names.split(","), value.partition(":")[0], *rest))
    return flags


def page():
    left, sections = parse(run_to_end("--flag-table").stdout), []
    assert left, "saccaded --flag-table prints nothing"
    for heading, pattern in SECTIONS:
        here = [flag for flag in left if re.fullmatch(pattern, flag.name)]
        left = [flag for flag in left if flag not in here]
        if here:
            rows = [flag.row() for flag in here]
            sections.append((heading, table(["flag", "value", "default", "accepted", "meaning"], rows)))
    return document("Flags", INTRODUCTION, sections)
