"""Checks that no test sleeps (tools/sleeps.py), under whatever name."""

import pathlib
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))

from sleeps import ALLOWED, found_in, sleeping  # noqa: E402

FOLDERS = ("client", "deploy", "kernels", "models", "server", "tests", "tools")
# Tests and what helps them. This file names what is to be found.
FILES = sorted(file for folder in FOLDERS for end in ("py", "cc", "h") for file in (ROOT / folder).rglob(f"*.{end}")
               if (file.stem.endswith("_test") or folder == "tests" or file.parent.name == "testing") and file != pathlib.Path(__file__).resolve())


def test_no_test_sleeps():
    assert len(FILES) > 400
    named = {file.relative_to(ROOT).as_posix(): file for file in FILES}
    found = [f"{name}:{number}" for name, file in named.items() for number in found_in(name, file.read_text(encoding="utf-8"))]
    assert not found
    assert set(ALLOWED) <= set(named)


def test_a_helper_may_sleep_as_often_as_is_allowed():
    name, (count, _) = next(iter(ALLOWED.items()))
    assert found_in(name, "time.sleep(1)\n" * count) == []
    assert found_in(name, "time.sleep(1)\n" * (count + 1)) == list(range(1, count + 2))
    assert found_in(name, "") == [1]
    assert found_in("tests/other.py", "time.sleep(1)\n") == [1]


@pytest.mark.parametrize("line", [
    "  absl::SleepFor(absl::Milliseconds(5));", "std::this_thread::sleep_for(1s);", "  usleep(100);", "nanosleep(&time, nullptr);",
    "sleep(1);", "poll(nullptr, 0, 50);", "select(0, nullptr, nullptr, nullptr, &time);",
    "    time.sleep(0.1)", "nap = time.sleep", "from time import monotonic, sleep", "    await asyncio.sleep(0.5)", "gevent.sleep(1)",
    "threading.Event().wait(seconds)", "        self._pause.wait(0.03)", "    stop.wait(timeout=.5)", "page.wait_for_timeout(200)",
    "await new Promise((resolve) => setTimeout(resolve, 50));", "select.select([], [], [], 0.1)",
    'subprocess.run(["sleep", "1"])', 'subprocess.run("sleep 1", shell=True)', "os.system(f'sleep {seconds}')",
    "  absl::Notification().WaitForNotificationWithTimeout(absl::Seconds(1));",
    "EXPECT_FALSE(absl::Notification{}.WaitForNotificationWithTimeout(absl::Seconds(1)));",
    "  never_.WaitForNotificationWithTimeout(absl::Seconds(1));", "    stop.wait(5)", "  cv.wait_for(lock, 100ms);",
    "  parts->cv.wait_until(lock, now + std::chrono::seconds(1));", "  future.wait_for(100ms);", "  cv_.WaitWithTimeout(&mutex_, absl::Seconds(1));",
    "  std::promise<void>().get_future().wait_for(1s);", "poll(0, 0, 50);", "  ::poll(NULL, 0, 50);", "select.poll().poll(50)",
    "threading.Condition().wait(1)",
])
def test_a_planted_sleep_is_found(line):
    assert sleeping(f"first\n{line}\n") == [2]


@pytest.mark.parametrize("line", [
    "EXPECT_TRUE(done.WaitForNotificationWithTimeout(absl::Seconds(30)));", "    assert may_end.wait(60)", "process.wait(timeout=60)",
    "while not self._end.wait(0.02):", "    await asyncio.sleep(0)", "threading.Event().wait()", "started.wait();",
    'assert command[0] == "sleep"', "return {.now = now, .sleep_until = [this](absl::Time due) { Until(due); }};",
    "select.select([one], [], [], DEADLINE_SECONDS)", "page.wait_for_function('() => document.title')",
    'for (const char* delay : {"sleep", "busy"}) {',
    "  cv.wait_for(lock, 100ms, [&] { return done; });", "if (cv.wait_for(lock, 30s) == std::cv_status::timeout) {",
    "  EXPECT_EQ(future.wait_for(30s), std::future_status::ready);", "    process.wait(5)", "    self._barrier.wait(5)", "    others.wait(60)",
    "poll(&one, 1, 50);", "descriptors.poll(50)", "const bool ended = done.WaitForNotificationWithTimeout(absl::Seconds(60));",
    "return mutex_.AwaitWithTimeout(absl::Condition(&are_there), absl::Seconds(60));",
    "asyncio.run(asyncio.wait_for(test(), 60))",
])
def test_waiting_for_something_passes(line):
    assert sleeping(line) == []
