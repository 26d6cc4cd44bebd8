"""The runs of a report: every scenario on every system, in turns, until LoadGen says VALID or all tries are used up."""

import bisect
import dataclasses

import torch

from tools.proof import drive, noise, scenarios, systems

# Offline's expected rate after a run that ended too soon.
MORE, OFFLINE_TRIES = 1.5, 4
# Server's rates as shares of what Offline reached, 7 % apart: two rounds that differ by one step still agree.
SHARES = [0.95 * 0.93**step for step in range(40)]
# A try that only looks for the rate lasts this part of a run.
SHORT_TRY = 1 / 6
# What a rate is guessed to be before anything was measured. Too low a guess costs a short run.
FIRST_GUESS = 100
# Two rounds agree if their figures differ by at most this share.
AGREE = 0.1
# Accuracies of two systems may differ by this much, logits by this share of the largest one: JPEG decoders and scalers differ.
ACCURACY_APART, LOGITS_APART = 0.02, 0.05


def descent(first, last):
    """Steps to try in turn: each goes down twice as far as the one before; `last` is the end."""
    step, further = first, 1
    while step < last:
        yield step
        step, further = step + further, 2 * further
    yield last


@dataclasses.dataclass
class Campaign:
    length: scenarios.Length
    pictures: object
    folder: object
    tell: object
    # All runs in their order; those that a result is printed of, by (scenario, system).
    runs: list = dataclasses.field(default_factory=list)
    results: dict = dataclasses.field(default_factory=dict)
    # By system: each picture's logits, and failures.
    answers: dict = dataclasses.field(default_factory=dict)
    faults: list = dataclasses.field(default_factory=list)

    def measure(self, name, system, scenario, rate=None, length=None):
        folder = self.folder / f"{len(self.runs):03}-{name}-{scenario}"
        run = drive.measure(name, system, scenario, len(self.pictures.files), length or self.length, folder, rate)
        self.runs.append(run)
        value, unit = run.figure
        self.tell(f"{scenario:12} {name:9} {value:10.2f} {unit:9} {run.word}  others {run.noise.others:.0%} of the processors"
                  + (f"  ({'; '.join(run.reasons)})" if run.reasons else ""))
        return run

    def offline(self, name, system):
        earlier = [run.figure[0] for run in self.runs if run.system == name and run.scenario == "Offline"]
        guess = MORE * max(earlier, default=FIRST_GUESS)
        for _ in range(OFFLINE_TRIES):
            run = self.measure(name, system, "Offline", guess)
            if run.valid:
                break
            # LoadGen sends as many samples as the expected rate computes in the time; a faster system is done too soon.
            guess = MORE * max(guess, run.figure[0])
        return run

    def server(self, name, system):
        """Looks for the highest rate by short tries, then measures there; where that is INVALID, at lower and lower rates."""
        reached = self.results["Offline", name][-1].figure[0]
        short = dataclasses.replace(self.length, seconds=SHORT_TRY * self.length.seconds)
        lowest = len(SHARES) - 1
        found = bisect.bisect_left(range(lowest), True, key=lambda step: self.measure(
            name, system, "Server", SHARES[step] * reached, short).valid)
        for step in descent(found, lowest):
            run = self.measure(name, system, "Server", SHARES[step] * reached)
            if run.valid:
                break
        return run

    def play(self, all_systems, rounds):
        """The systems take turns within each scenario, and begin with another one in each round."""
        names = list(all_systems)
        for number in range(rounds):
            for scenario in scenarios.SCENARIOS:
                for name in names[number % len(names):] + names[:number % len(names)]:
                    run = {"Offline": self.offline, "Server": self.server}.get(
                        scenario, lambda name, system: self.measure(name, system, scenario))(name, all_systems[name])
                    self.results.setdefault((scenario, name), []).append(run)
        for (scenario, name), runs in self.results.items():
            self.faults += [f"{scenario}, {name}: INVALID: {'; '.join(run.reasons)}" for run in runs if not run.valid]

    def check_accuracy(self, all_systems):
        """Asks every system for every picture, by LoadGen's accuracy mode."""
        count = len(self.pictures.files)
        for name, system in all_systems.items():
            found, failed = drive.answers(system, count, systems.CLASSES, self.folder / f"accuracy-{name}")
            self.answers[name] = found
            if len(found) != count:
                self.faults.append(f"accuracy, {name}: {len(found)} of {count} pictures were answered: {dict(failed)}")
        complete = [name for name, found in self.answers.items() if len(found) == count]
        for name in complete:
            apart = abs(self.accuracy(name) - self.accuracy(complete[0]))
            if apart > ACCURACY_APART:
                self.faults.append(f"accuracy: {name} and {complete[0]} are {apart:.3f} apart, expected at most {ACCURACY_APART}")
            if (logits := self.apart(name, complete[0])) > LOGITS_APART:
                self.faults.append(f"accuracy: logits of {name} and {complete[0]} are {logits:.3f} of the largest apart, "
                                   f"expected at most {LOGITS_APART}")

    def accuracy(self, name):
        """Share of the pictures whose most probable class is their label."""
        found = self.answers[name]
        return sum(int(found[number].argmax()) == label for number, label in enumerate(self.pictures.labels)) / len(found)

    def apart(self, name, other):
        """The largest difference of a logit, as a share of the largest logit."""
        one, two = (torch.tensor([found[number].tolist() for number in sorted(found)])
                    for found in (self.answers[name], self.answers[other]))
        return float((one - two).abs().max() / two.abs().max())

    def same(self, name, other):
        """Pictures to which both give the same class."""
        return sum(int(self.answers[name][number].argmax()) == int(row.argmax()) for number, row in self.answers[other].items())

    def spread(self, scenario, name):
        """How far the rounds' figures are apart, as a share of the smallest; None if there is one round."""
        figures = [run.figure[0] for run in self.results[scenario, name]]
        return (max(figures) - min(figures)) / min(figures) if len(figures) > 1 else None

    @property
    def quiet(self):
        noises = [run.noise for run in self.runs]
        return all(one.quiet for one in noises) and noise.pace_apart(noises) <= noise.STEADY

    def check_agreement(self):
        """On a quiet machine, rounds that differ are a fault. On a busy one, the report says that it was busy."""
        if not self.quiet:
            return
        for scenario, name in self.results:
            spread = self.spread(scenario, name)
            if spread is not None and spread > AGREE:
                self.faults.append(f"{scenario}, {name}: the rounds are {spread:.0%} apart on a quiet machine, expected at most {AGREE:.0%}")
