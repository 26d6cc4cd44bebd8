"""Finds tests that sleep: python tools/sleeps.py FILE.... Prints each line that does, and then ends with exit code 1.

A test waits for a condition, with a limit. Of the helpers that tests call, those in ALLOWED may sleep: harness.eventually() between
two looks, and clients and services that are slow on purpose. Called by ./dev lint, in the root of the checkout."""

import pathlib
import re
import sys

# Calls that do nothing but let time pass.
SLEEPS = re.compile(
    r"\b(?:SleepFor|sleep_for|sleep_until|usleep|nanosleep)\(|(?<![\w.])sleep\(\s*[\w.]|\btime\.sleep\b|\bgevent\.sleep\(|"
    # asyncio.sleep(0) only lets other tasks run.
    r"\basyncio\.sleep\((?!0\))|from (?:time|asyncio|gevent) import [^#]*\bsleep\b|\bwait_for_timeout\(|\bsetTimeout\(|"
    # Events that nobody can set, descriptors of which there are none, and a program that sleeps.
    r"\b(?:Event|Condition)\(\)\.wait\([^)]|\bNotification(?:\(\)|\{\})\.WaitForNotificationWith|\bpromise<\w*>(?:\(\)|\{\})\.get_future\(\)|"
    r"\bselect\.select\(\[\], *\[\],|(?<![\w.])select\(0,|\bp?poll\(\s*(?:nullptr|NULL|0)\s*,|\bpoll\(\)\.poll\(|"
    r"[\[(]\"sleep\",|[\"']sleep [0-9{$]")
# An event or a condition variable that is awaited for some time, and whose answer is not looked at: what follows happens whether
# it was set or not. A wait with a predicate has three arguments.
UNSEEN = re.compile(
    # Processes and barriers raise an error when the time is over. Longer times than some seconds are limits of a test.
    r"^\s*(?!\S*(?:process|program|daemon|server|barrier)\.wait\()[\w.]+\.wait\((?:timeout=)?(?:\d*\.\d+|\d)\)\s*(?:#.*)?$|"
    r"^\s*[\w.>-]+(?:\.|->)wait_(?:for|until)\((?:\s*\w+\s*,)?[^,;]+\);|"
    r"^\s*[\w.>-]+(?:\.|->)(?:WaitForNotification|Wait|Await)With(?:Timeout|Deadline)\(.*\);")
# Helpers of tests that let time pass on purpose: how many of their lines do, and why.
ALLOWED = {
    "tests/bulk/processes.py": (2, "it looks again after a moment until something has happened"),
    "tests/bulk/stand_in.py": (1, "it stands for a service whose passes take some time"),
    "tests/e2e/attacks_by_frames.py": (2, "an attacker sends at its own pace"),
    "tests/e2e/attacks_by_heads.py": (2, "an attacker sends at its own pace"),
    "tests/e2e/attacks_by_http1.py": (3, "an attacker sends at its own pace"),
    "tests/e2e/attacks_by_messages.py": (2, "an attacker sends at its own pace"),
    "tests/e2e/front_attack.py": (1, "an attacker begins its next round after a moment"),
    "tests/e2e/harness.py": (3, "eventually() looks again after a moment, and clients send at their own pace"),
    "tests/e2e/http2_frames.py": (1, "a client reads slowly"),
}


def sleeping(text: str) -> list[int]:
    """Returns the numbers of the lines that sleep."""
    return [number for number, line in enumerate(text.splitlines(), 1) if SLEEPS.search(line) or UNSEEN.match(line)]


def found_in(file: str, text: str) -> list[int]:
    """Like sleeping(), without the lines that ALLOWED permits to the file: all of them, unless there are more or fewer."""
    lines = sleeping(text)
    return [] if len(lines) == ALLOWED.get(file, (0, ""))[0] else lines or [1]



def main(files: list[str]) -> int:
    found = 0
    for file in files:
        text = pathlib.Path(file).read_text(encoding="utf-8")
        for number in found_in(file, text):
            print(f"{file}:{number}: {text.splitlines()[number - 1].strip()}", file=sys.stderr)
            found += 1
    if found:
        print("these tests sleep, or ALLOWED of tools/sleeps.py states another number of lines for the helper; wait for a condition "
              "(harness.eventually), or inject a clock", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
