"""Processor time of processes and threads, from /proc. Linux counts it in ticks of 10 ms."""

import collections
import os
import pathlib

TICKS = os.sysconf("SC_CLK_TCK")


def fields(stat):
    """The fields of a line of /proc/PID/stat that follow the name. The name is in parentheses and may contain some."""
    return stat.rpartition(")")[2].split()


def processor_seconds(stat):
    """Processor time so far of a process or thread, given its line in /proc."""
    found = fields(stat)
    return (int(found[11]) + int(found[12])) / TICKS


def with_descendants(root, stats):
    """Processor time so far of the process `root` and of its descendants; `stats` are the lines of all processes."""
    seconds, children = {}, collections.defaultdict(list)
    for stat in stats:
        process = int(stat.split()[0])
        seconds[process] = processor_seconds(stat)
        children[int(fields(stat)[1])].append(process)

    def total(process):
        return seconds[process] + sum(total(child) for child in children[process])

    return total(root)


def spent(process):
    """Processor time so far of a running process and of its descendants."""
    stats = []
    for path in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            stats.append(path.read_text())
        except (FileNotFoundError, ProcessLookupError):  # the process has ended meanwhile
            continue
    return with_descendants(process, stats)
