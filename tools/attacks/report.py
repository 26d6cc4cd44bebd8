"""The report of played attacks: a table, and what was not as it has to be."""

import front_attackers
from tools.attacks.play import LIMIT_BYTES, MODEL, PAUSE_SECONDS
from tools.markdown import table

MIB = 1 << 20
# How many times its usual time a call of an innocent client may take.
MAX_TIMES = 2
HEAD = ("attack", "sent, kB/s", "memory before, MiB", "peak", "after", "cores before", "during", "p50 before, ms", "during",
        "p99 before, ms", "during", "failed")


def cell(value, format_, factor=1):
    return "" if value is None else format(value * factor, format_)


def row(played):
    before, during = played.before, played.during
    failed = len(before.failures) + len(during.failures) + len(played.after.failures)
    return [
        f"`{played.name}`",
        f"{played.rate / 1000:,.1f}",
        *(cell(value, ".0f", 1 / MIB) for value in (played.resident_before, played.resident_peak, played.resident_after)),
        *(cell(calls.cores, ".2f") for calls in (before, during)),
        *(cell(calls.percentile(share), ".1f", 1000) for share in (0.5, 0.99) for calls in (before, during)),
        failed,
    ]


def broken(played):
    """What must not happen, whatever the machine does beside."""
    found = [played.fault] if played.fault else []
    if played.exit_code is not None:
        found.append(f"the daemon ended with {played.exit_code}")
    if not played.fault and not played.rounds:
        found.append("the attacker did nothing")
    for when in ("before", "during", "after"):
        calls = getattr(played, when)
        if calls.failures:
            found.append(f"{len(calls.failures)} of {calls.made} calls failed {when} the attack: {calls.failures[0]}")
    return [f"{played.name}: {one}" for one in found]


def max_cores(played):
    """Processor time that an attacker may take from the daemon in a second, if it sends less than SLOW_RATE."""
    dear = front_attackers.DEAR.get(front_attackers.BY_NAME[played.name], 0)
    return max(front_attackers.CHEAP_CORES, dear * played.rounds / played.seconds)


def missed(played):
    """Goals that were missed. Some depend on what else the machine does."""
    found = []
    if None not in (played.resident_before, played.resident_peak):
        grown = played.resident_peak - played.resident_before
        if grown >= front_attackers.ROOM:
            found.append(f"memory grew by {grown / MIB:.0f} MiB, expected less than {front_attackers.ROOM / MIB:.0f}")
    before, during = played.before.percentile(0.5), played.during.percentile(0.5)
    if None not in (before, during) and during > MAX_TIMES * before:
        found.append(f"the median of the calls was {1000 * during:.1f} ms, expected at most {MAX_TIMES} times the usual "
                     f"{1000 * before:.1f}")
    if None not in (played.before.cores, played.during.cores) and played.seconds and played.rate < front_attackers.SLOW_RATE:
        taken, allowed = played.during.cores - played.before.cores, max_cores(played)
        if taken > allowed:
            found.append(f"{played.rate / 1000:.1f} kB/s took {taken:.2f} of a core, expected at most {allowed:.2f}")
    return [f"{played.name}: {one}" for one in found]


def limit_text(unlimited_because):
    if unlimited_because is None:
        return f"Each daemon runs in a control group of {LIMIT_BYTES >> 30} GiB, with its decode workers."
    return f"The memory of the daemons was **not limited** to {LIMIT_BYTES >> 30} GiB: {unlimited_because}."


def reached():
    return (f"No attack took {front_attackers.ROOM // MIB} MiB or more, and none made the median of the calls longer than {MAX_TIMES} "
            f"times the usual one. None that sent less than {front_attackers.SLOW_RATE // 1000} kB/s took more of a core than it may "
            f"({front_attackers.CHEAP_CORES:g}; more only for those that `DEAR` in `tests/e2e/front_attackers.py` names). No call "
            "failed, and no daemon ended.")


def report(all_played, unlimited_because):
    """`unlimited_because` is why the daemons ran in no control group; None if they did."""
    told = [one for played in all_played for one in broken(played) + missed(played)]
    flags = " ".join(f"`{flag}`" for flag in front_attackers.FLAGS)
    return "\n".join([
        f"{len(all_played)} attacks, one after the other, each on a daemon of its own with {flags}. {limit_text(unlimited_because)}",
        "",
        "Memory is the resident memory of the daemon's process: at rest, the most during the attack, and at rest again. Cores are the "
        "processor time of that process in a second, with what the innocent client's calls take. That client sends a picture to the "
        f"demo's `{MODEL}` over gRPC, and {1000 * PAUSE_SECONDS:.0f} ms after the answer the next one. Client, attacker and daemon share "
        "the machine.",
        "",
        table(HEAD, [row(played) for played in all_played]),
        "",
        *(["What was not reached:", "", *(f"- {one}" for one in told)] if told else [reached()]),
    ])
