"""Reads what LoadGen writes: its summary, and its log of answers."""

import dataclasses
import json
import re

import numpy

LINE = re.compile(r"^(.+?)\s*: (.*)$")
PERCENTILE = re.compile(r"^(\d+\.\d+) percentile latency \(ns\)$")


class NoSummary(Exception):
    pass


@dataclasses.dataclass
class Summary:
    scenario: str
    valid: bool
    # In LoadGen's words, if it is not valid.
    reasons: list[str]
    # Nanoseconds of a query (in Offline, of a sample) by percentile, as "99.00".
    latencies: dict[str, float]
    # All other lines, by the text before the colon.
    values: dict[str, str]

    def number(self, *names):
        """The value of the first of `names` that the summary has."""
        for name in names:
            if name in self.values:
                return float(self.values[name])
        raise NoSummary(f"LoadGen's summary has none of the lines {', '.join(names)}; expected one of {sorted(self.values)}")


def parse(text):
    """Raises NoSummary if the text is not a whole summary of a performance run."""
    values, latencies, section = {}, {}, ""
    reasons = []
    for line in text.splitlines():
        if line.endswith(":"):
            section = line
        elif section == "Recommendations:" and line.startswith(" * "):
            reasons.append(line[3:])
        found = LINE.match(line.strip())
        if not found:
            continue
        name, value = found.groups()
        if percentile := PERCENTILE.match(name):
            latencies[percentile[1]] = float(value)
        values[name] = value
    for needed in ("Scenario", "Result is"):
        if needed not in values:
            raise NoSummary(f"LoadGen's summary has no line '{needed}'; expected the file of a run that ended by itself")
    unsatisfied = [f"{name}: {value}" for name, value in values.items() if name.endswith("satisfied") and value != "Yes"]
    valid = values["Result is"] == "VALID"
    return Summary(values["Scenario"], valid, [] if valid else unsatisfied + reasons, latencies, values)


def answers(text, classes):
    """Returns {number of the picture: its logits} of a log of answers."""
    found = {}
    for entry in json.loads(text):
        logits = numpy.frombuffer(bytes.fromhex(entry["data"]), numpy.float32)
        if len(logits) != classes:
            raise NoSummary(f"LoadGen logged {len(logits)} values for picture {entry['qsl_idx']}; expected {classes}")
        found[entry["qsl_idx"]] = logits
    return found
