"""Finds processes by words of their command, and acts in the middle of a job."""

import pathlib
import threading
import time


def processes(*words):
    """Returns the ids of the running processes whose command has all the words, oldest first. A word that starts with
    ! must be absent."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
            except (FileNotFoundError, ProcessLookupError):
                continue
            if state != "Z" and all((word[1:] not in command) if word[0] == "!" else word in command for word in words):
                found.append(int(entry.name))
    return sorted(found)


def await_end(*words):
    """Waits until none of these processes runs."""
    end = time.monotonic() + 120
    while processes(*words):
        assert time.monotonic() < end, processes(*words)
        time.sleep(0.1)


def parent(pid):
    return int(pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def descendants(pid):
    """Returns the process and those that it has started, directly or not."""
    found, new = {pid}, True
    while new:
        new = False
        for entry in pathlib.Path("/proc").iterdir():
            if entry.name.isdigit() and int(entry.name) not in found:
                try:
                    above = parent(int(entry.name))
                except (FileNotFoundError, ProcessLookupError):
                    continue
                if above in found:
                    found.add(int(entry.name))
                    new = True
    return sorted(found)


def after_parts(folder, parts, act):
    """Calls `act` once the job has written so many parts. Returns the thread that waits for it."""

    def watch():
        while len(list(folder.glob("part-*"))) < parts:
            time.sleep(0.02)
        act()

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    return watcher
