"""Judges by the samples of a soak whether the daemon grew."""

from tools.soak.measure import by_minute, slope

# Maximum growth of the memory over the measured time, as a share of its mean; the same as in reload_soak_test.
MAX_GROWTH = 0.02
# Maximum growth of the mean number of descriptors and of threads from the first half to the second. Connections open
# and close, each with a descriptor.
MAX_MORE = 2


def grown(looks, name):
    """Returns (the slope per hour, growth over the measured time as a share of the mean, growth of the mean from the
    first half to the second), all of the medians of the minutes."""
    times, values = by_minute([one.seconds for one in looks], [getattr(one, name) for one in looks])
    mean, half = sum(values) / len(values), len(values) // 2
    steep = slope(times, values)
    more = sum(values[half:]) / len(values[half:]) - sum(values[:half]) / half
    return steep, steep * (times[-1] - times[0]) / 3600 / mean, more


def faults_of(found):
    faults = [f"{count} x {fault}" for fault, count in found["faults"]]
    if found["exit_code"] != 0:
        faults.append(f"the daemon ended with {found['exit_code']}")
    if found["reloads"] == 0:
        faults.append("nothing was reloaded")
    for name, words in (("resident_mib", "resident memory"), ("allocated_mib", "allocated memory")):
        if (share := found["growth"][name][1]) > MAX_GROWTH:
            faults.append(f"{words} grew by {share:.1%}, expected at most {MAX_GROWTH:.0%}")
    for name in ("threads", "descriptors"):
        if (more := found["growth"][name][2]) > MAX_MORE:
            faults.append(f"{more:.1f} more {name} in the second half, expected at most {MAX_MORE}")
    return faults
