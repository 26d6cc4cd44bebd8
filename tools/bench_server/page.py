"""Writes docs/benchmarks/server.md: tables, and the goals with their results."""

import datetime
import pathlib
import subprocess

from tools.markdown import table


class Page:
    def __init__(self):
        self.parts = []
        self.goals = []

    def table(self, title, head, rows, note=""):
        self.parts.append((title, head, rows, note))
        print(f"\n{title}")
        for row in [head, *rows]:
            print("  " + "  ".join(f"{cell:>14}" for cell in row))

    def note(self, text):
        """Adds a note about something that could not be measured."""
        self.parts.append((text, None, None, ""))
        print(text)

    def goal(self, what, value, least=None, most=None, unit=""):
        """Records whether `value` is at least `least`, or at most `most`."""
        reached = value >= least if least is not None else value <= most
        asked = f">= {least:g}{unit}" if least is not None else f"<= {most:g}{unit}"
        self.goals.append((what, asked, f"{value:.2f}{unit}", "yes" if reached else "**no**"))

    def text(self, command, root):
        commit = subprocess.run(["git", "-C", root, "describe", "--always", "--dirty"], capture_output=True, text=True)
        lines = ["# The running daemon", "", f"    {command}", "",
                 f"Written by that command on {datetime.date.today()}, commit {commit.stdout.strip()}, on {machine()}.",
                 "Candidates take turns in rounds; clients, servers and models share the machine. Latencies are in",
                 "microseconds, of every call; `CPU a call` is the server's processor time, with that of processes which it",
                 "started, divided by the calls that it answered, in microseconds; `against` is a multiple of the",
                 "candidate it names.", "",
                 "## What was to be reached", "", table(["", "asked", "measured", "reached"], self.goals), ""]
        for title, head, rows, note in self.parts:
            if head is None:
                lines += [title, ""]
            else:
                lines += [f"## {title}", "", *([note, ""] if note else []), table(head, rows), ""]
        return "\n".join(lines)


def machine():
    info = pathlib.Path("/proc/cpuinfo").read_text()
    models = {line.split(":")[1].strip() for line in info.splitlines() if line.startswith("model name")}
    cores = sum(line.startswith("processor") for line in info.splitlines())
    return f"{cores} cores of {', '.join(sorted(models))}"
