"""A strict parser of the Prometheus text format 0.0.4."""

import re

HELP = re.compile(r"# HELP ([a-zA-Z_][a-zA-Z0-9_]*) (.+)")
TYPE = re.compile(r"# TYPE ([a-zA-Z_][a-zA-Z0-9_]*) (counter|gauge|histogram)")
SAMPLE = re.compile(r"([a-zA-Z_][a-zA-Z0-9_]*)(?:\{(.*)\})? (\S+)")
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"(?:,|$)')


class Metrics(dict):
    """Sample values by (name, frozenset of labels)."""

    def __init__(self):
        super().__init__()
        self.types = {}

    def value(self, name, **labels):
        """The value of the sample with exactly these labels."""
        return self[(name, frozenset(labels.items()))]

    def total(self, name, **labels):
        """The sum of all samples that have these labels; 0 if there are none."""
        return sum(value for (found, has), value in self.items() if found == name and labels.items() <= set(has))

    def names(self):
        return {name for name, _ in self}


def labels_of(text):
    if not text:
        return frozenset()
    found = list(LABEL.finditer(text))
    assert "".join(match[0] for match in found) == text, f"bad labels: {text}"
    names = [match[1] for match in found]
    assert len(names) == len(set(names)), f"a label twice: {text}"
    return frozenset((match[1], match[2]) for match in found)


def parse(text):
    assert text.endswith("\n")
    metrics, helped, family = Metrics(), set(), None
    for line in text.splitlines():
        if match := HELP.fullmatch(line):
            assert match[1] not in helped, f"HELP of {match[1]} twice"
            helped.add(match[1])
        elif match := TYPE.fullmatch(line):
            family = match[1]
            assert family in helped, f"{family} has no HELP"
            assert family not in metrics.types, f"{family} comes twice"
            metrics.types[family] = match[2]
        else:
            match = SAMPLE.fullmatch(line)
            assert match, f"not a sample: {line!r}"
            name = match[1]
            suffixes = ("_bucket", "_sum", "_count") if metrics.types.get(family) == "histogram" else ("",)
            assert name in {family + suffix for suffix in suffixes}, f"{name} stands under {family}"
            key = (name, labels_of(match[2]))
            assert key not in metrics, f"{key} comes twice"
            metrics[key] = float(match[3])
    check_histograms(metrics)
    return metrics


def check_histograms(metrics):
    series = {}
    for (name, labels), value in metrics.items():
        if name.endswith("_bucket") and metrics.types.get(name.removesuffix("_bucket")) == "histogram":
            bound = dict(labels)["le"]
            rest = frozenset(label for label in labels if label[0] != "le")
            series.setdefault((name.removesuffix("_bucket"), rest), []).append((float(bound), value))
    for (family, labels), buckets in series.items():
        buckets.sort()
        counts = [count for _, count in buckets]
        assert counts == sorted(counts), f"{family}: buckets are not cumulative"
        assert buckets[-1][0] == float("inf"), f"{family}: no +Inf bucket"
        assert counts[-1] == metrics[(f"{family}_count", labels)]
