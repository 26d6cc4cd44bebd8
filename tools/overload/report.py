"""Reports the results of an overload as text and a plot, and lists missed bounds."""

from tools.markdown import table
from tools.overload.play import CLIENTS, MODEL, TIMES
from tools.soak.measure import draw, slope

LEAST_GOODPUT = 0.95
# Maximum share of late responses among all responses.
MAX_LATE = 0.01
# Share of the time that is ignored for memory: threads, the allocator's pools and the connections' buffers grow in it.
SETTLED = 0.2
# Maximum growth of the memory over the measured time, as a share of its mean; the same as in a soak.
MAX_GROWTH = 0.02
LEAST_FAIRNESS = 0.97
# If calls are sent later than this share of the deadline, the load generator was the bottleneck.
MAX_BEHIND = 0.2
# If the peak changes by more than this share, the machine is reported as not quiet.
MAX_DRIFT = 0.03


def jain(values):
    """Jain's fairness index: 1 if all values are equal, 1/n if one has everything."""
    squares = sum(value * value for value in values)
    return sum(values) ** 2 / (len(values) * squares) if squares else 0.0


class Found:
    """Figures derived from an overload."""

    def __init__(self, played):
        self.played, self.calls = played, played.calls
        self.share = played.goodput / played.peak if played.peak else 0.0
        answers = self.calls["in_time"] + self.calls["late"]
        self.late = self.calls["late"] / answers if answers else 1.0
        self.fairness = jain(self.calls["in_time_by_client"])
        self.settle = SETTLED * played.seconds
        settled = [one for one in played.looks if one.seconds >= self.settle]
        times, values = [one.seconds for one in settled], [one.resident_mib for one in settled]
        self.resident = values
        # MiB per hour; and the growth over the measured time, as a share of the mean.
        self.slope = slope(times, values)
        self.growth = self.slope * (times[-1] - times[0]) / 3600 / (sum(values) / len(values))

    def faults(self):
        return self.unaccounted() + self.missed()

    def unaccounted(self):
        """Inconsistencies that invalidate all figures."""
        played, calls, counters = self.played, self.calls, self.played.counters
        ended = sum(calls[outcome] for outcome in ("in_time", "late", "refused", "failed"))
        checks = (
            (ended != calls["sent"], f"{calls['sent']} calls were sent, and {ended} accounted for"),
            (calls["failed"] > 0, f"calls failed: {calls['failed_by_code']}"),
            # A call that the client gives up before it reaches the daemon is late. Each connection is opened by one
            # more call.
            (not 0 <= calls["sent"] + CLIENTS - counters.ended <= calls["late"],
             f"{calls['sent']} calls and {CLIENTS} that open a connection were sent, {calls['late']} of them late, and the "
             f"daemon counted {counters.ended:.0f}"),
            (played.exit_code != 0, f"the daemon ended with {played.exit_code}"),
        )
        return [fault for wrong, fault in checks if wrong]

    def missed(self):
        """Bounds that were missed."""
        behind = self.calls["behind_ms"]["p99"] / self.played.deadline_ms
        checks = (
            (self.share < LEAST_GOODPUT,
             f"goodput was {self.share:.1%} of the peak, expected at least {LEAST_GOODPUT:.0%}"),
            (self.late > MAX_LATE, f"{self.late:.2%} of the answers were late, expected at most {MAX_LATE:.0%}"),
            (self.growth > MAX_GROWTH,
             f"resident memory grew by {self.growth:.1%}, expected at most {MAX_GROWTH:.0%}"),
            (self.fairness < LEAST_FAIRNESS,
             f"fairness among clients was {self.fairness:.3f}, expected at least {LEAST_FAIRNESS}"),
            (behind > MAX_BEHIND, f"the load generator was behind by {behind:.0%} of a deadline (p99): it was too slow"),
        )
        return [fault for wrong, fault in checks if wrong]

    def rows(self):
        played, calls, counters = self.played, self.calls, self.played.counters
        first, last = played.looks[0], played.looks[-1]
        seconds = last.seconds - first.seconds
        passes = max(1.0, counters.passes)
        cores = [getattr(last, kind) - getattr(first, kind) for kind in ("used", "computing", "decoding", "calling")]
        used, computing, decoding, calling = (spent / seconds for spent in cores)
        waited = 1000 * counters.waited / max(1.0, counters.waits)
        reasons = ", ".join(f"{count} {reason}" for reason, count in sorted(calls["refused_by_reason"].items())) or "none"
        return (
            ("goodput", f"{played.goodput:.1f} a second, **{self.share:.1%}** of the peak of {played.peak:.1f}"),
            ("sent", f"{calls['sent']}, {calls['sent'] / played.seconds:.0f} a second"),
            ("answered in time", f"{calls['in_time']}; p50 {calls['answers_ms']['p50']:.0f} ms, p99 "
                                 f"{calls['answers_ms']['p99']:.0f} ms of {played.deadline_ms}"),
            ("late", f"{calls['late']}, {self.late:.2%} of the answers"),
            ("refused", f"{calls['refused']} ({reasons}); p50 {calls['refusals_ms']['p50']:.1f} ms, p99 "
                        f"{calls['refusals_ms']['p99']:.1f} ms"),
            ("failed", f"{calls['failed']}"),
            ("computed", f"{counters.items:.0f} pictures in {counters.passes:.0f} passes, {counters.items / passes:.2f} a "
                         f"pass; {counters.items - CLIENTS - calls['in_time']:.0f} of them for nobody"),
            ("waited for an instance", f"{waited:.0f} ms in the mean of what was answered"),
            ("fairness", f"{self.fairness:.4f} (Jain) among {CLIENTS} clients, which had {min(calls['in_time_by_client'])} "
                         f"to {max(calls['in_time_by_client'])} answers each"),
            ("resident memory", f"{first.resident_mib:.1f} MiB at the start, {self.resident[0]:.1f} after "
                                f"{self.settle / 60:.1f} minutes, {self.resident[-1]:.1f} at the end; since then "
                                f"{self.slope:+.2f} MiB an hour, {self.growth:+.2%}"),
            ("processor, the daemon's", f"{used:.2f} cores: {computing:.2f} to compute, {decoding:.2f} to decode, "
                                        f"{calling:.2f} for calls ({1e6 * calling * seconds / calls['sent']:.0f} us each)"),
            ("processor, the generator's", f"{calls['processor_s'] / calls['elapsed_s']:.2f} cores; behind by "
                                           f"{calls['behind_ms']['p99']:.1f} ms (p99)"),
        )

    def report(self):
        played = self.played
        steps = [*played.steps, played.before, played.after]
        return "\n".join([
            f"`{MODEL}` of the demo on one thread, PNG in, {CLIENTS} clients, a deadline of {played.deadline_ms} ms. The peak is what "
            f"an open loop gets in time at the best of {len(played.steps)} rates around what {CLIENTS} clients get who wait for "
            f"their answers ({played.closed:.1f} a second): the mean of before the overload and after it, the last two columns.",
            "",
            table(["calls a second", *(f"{step.rate:.0f}" for step in steps)],
                  [["in time", *(f"{step.goodput:.1f}" for step in steps)]]),
            "",
            *((f"The machine was not quiet: what it serves at its best changed by {played.drift:.0%} meanwhile.", "")
              if played.drift > MAX_DRIFT else ()),
            f"{TIMES} times the peak, {played.rate:.0f} calls a second, for {played.minutes:g} minutes:",
            "",
            table(("", ""), self.rows()),
        ])

    def plot(self, path):
        looks = self.played.looks
        times = [one.seconds for one in looks]
        pairs = list(zip(looks, looks[1:]))
        used = [(now.used - then.used) / (now.seconds - then.seconds) for then, now in pairs]
        seconds = self.calls["seconds"]
        wide = max(1, len(seconds) // 120)
        starts = range(0, len(seconds) - wide + 1, wide)
        in_time, refused = ([sum(one[kind] for one in seconds[at : at + wide]) / wide for at in starts] for kind in (0, 2))
        draw([
            ("answered in time a second", [at + wide / 2 for at in starts], in_time),
            ("refused a second", [at + wide / 2 for at in starts], refused),
            ("resident memory, MiB", times, [one.resident_mib for one in looks]),
            ("cores that the daemon uses", [now.seconds for _, now in pairs], used),
        ], self.settle, path)
