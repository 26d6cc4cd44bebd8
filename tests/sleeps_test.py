"""Checks that no test sleeps (tools/sleeps.py), under whatever name."""

import pathlib
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))

from sleeps import sleeping  # noqa: E402

FOLDERS = ("client", "deploy", "kernels", "models", "server", "tests", "tools")
# This one names what is to be found.
TESTS = sorted(file for folder in FOLDERS for end in ("py", "cc") for file in (ROOT / folder).rglob(f"*_test.{end}")
               if file != pathlib.Path(__file__).resolve())


def test_no_test_sleeps():
    assert len(TESTS) > 300
    found = [f"{file.relative_to(ROOT)}:{number}" for file in TESTS for number in sleeping(file.read_text(encoding="utf-8"))]
    assert not found


@pytest.mark.parametrize("line", [
    "  absl::SleepFor(absl::Milliseconds(5));", "std::this_thread::sleep_for(1s);", "  usleep(100);", "nanosleep(&time, nullptr);",
    "sleep(1);", "poll(nullptr, 0, 50);", "select(0, nullptr, nullptr, nullptr, &time);",
    "    time.sleep(0.1)", "nap = time.sleep", "from time import monotonic, sleep", "    await asyncio.sleep(0.5)", "gevent.sleep(1)",
    "threading.Event().wait(seconds)", "        self._pause.wait(0.03)", "    stop.wait(timeout=.5)", "page.wait_for_timeout(200)",
    "await new Promise((resolve) => setTimeout(resolve, 50));", "select.select([], [], [], 0.1)",
    'subprocess.run(["sleep", "1"])', 'subprocess.run("sleep 1", shell=True)', "os.system(f'sleep {seconds}')",
])
def test_a_planted_sleep_is_found(line):
    assert sleeping(f"first\n{line}\n") == [2]


@pytest.mark.parametrize("line", [
    "EXPECT_TRUE(done.WaitForNotificationWithTimeout(absl::Seconds(30)));", "    assert may_end.wait(60)", "process.wait(timeout=60)",
    "while not self._end.wait(0.02):", "    await asyncio.sleep(0)", "threading.Event().wait()", "started.wait();",
    'assert command[0] == "sleep"', "return {.now = now, .sleep_until = [this](absl::Time due) { Until(due); }};",
    "select.select([one], [], [], DEADLINE_SECONDS)", "page.wait_for_function('() => document.title')",
    'for (const char* delay : {"sleep", "busy"}) {',
])
def test_waiting_for_something_passes(line):
    assert sleeping(line) == []
