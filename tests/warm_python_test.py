"""run_module.py and warm_python.py: a fork runs a module as a process of its own would."""

import contextlib
import os
import pathlib
import signal
import subprocess
import sys

import pytest

TESTS = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(TESTS / "e2e"))
from harness import DEADLINE_SECONDS, eventually  # noqa: E402


@contextlib.contextmanager
def warm(folder, *modules, **variables):
    """The path of the socket of a warm process, which has imported pytest and `modules`."""
    path = folder / "socket"
    process = subprocess.Popen([sys.executable, TESTS / "warm_python.py", path, "pytest", *modules], env=environment(**variables))
    eventually(path.exists, "the process listens")
    yield path
    process.kill()
    process.wait()


def command(folder, text):
    (folder / "some_test.py").write_text(text)
    return [sys.executable, TESTS / "run_module.py", "pytest", "-q", "-p", "no:cacheprovider", folder / "some_test.py"]


def environment(**more):
    kept = {name: value for name, value in os.environ.items() if name not in ("SACCADE_WARM_PYTHON", "OMP_NUM_THREADS")}
    return {**kept, **more}


@pytest.fixture(params=["fork", "own process"])
def run(request, tmp_path):
    """Runs a test's text in `tmp_path`."""
    with contextlib.ExitStack() as opened:
        more = {"SACCADE_WARM_PYTHON": str(opened.enter_context(warm(tmp_path)))} if request.param == "fork" else {}

        def run_text(text, **others):
            return subprocess.run(command(tmp_path, text), cwd=tmp_path, env=environment(**more, **others), text=True,
                                  capture_output=True, timeout=DEADLINE_SECONDS)

        yield run_text


def test_exit_codes_are_the_test_s(run):
    assert run("def test_it(): pass").returncode == 0
    failed = run("def test_it():\n    assert 1 == 2")
    assert failed.returncode == 1 and "assert 1 == 2" in failed.stdout
    assert run("").returncode == 5


def test_a_signal_that_ends_the_test_ends_the_caller(run):
    assert run("import os, signal\ndef test_it(): os.kill(os.getpid(), signal.SIGSEGV)").returncode == -signal.SIGSEGV


def test_environment_folder_and_path_are_the_caller_s(run, tmp_path):
    (tmp_path / "modules").mkdir()
    (tmp_path / "modules" / "named.py").write_text("VALUE = 3")
    text = f"""
import os, sys, named
def test_it():
    assert os.getcwd() == {str(tmp_path)!r} and named.VALUE == 3
    assert os.environ["OF_THE_CALLER"] == "yes" and "OF_ANOTHER" not in os.environ
    assert sys.dont_write_bytecode and {str(TESTS)!r} not in sys.path
"""
    given = {"PYTHONPATH": str(tmp_path / "modules"), "PYTHONDONTWRITEBYTECODE": "1"}
    ended = run(text, OF_THE_CALLER="yes", **given)
    assert ended.returncode == 0, ended.stdout
    ended = run(text.replace("OF_ANOTHER", "OF_THE_CALLER"), OF_THE_CALLER="yes", **given)
    assert ended.returncode == 1


@pytest.fixture(params=["fork", "own process"])
def module(request, tmp_path):
    """Runs the module `program`, whose text is given, in `tmp_path`."""
    with contextlib.ExitStack() as opened:
        more = {"SACCADE_WARM_PYTHON": str(opened.enter_context(warm(tmp_path)))} if request.param == "fork" else {}

        def run_text(text, *arguments):
            (tmp_path / "program.py").write_text(text)
            return subprocess.run([sys.executable, TESTS / "run_module.py", "program", *arguments], cwd=tmp_path, text=True,
                                  input="given", env=environment(**more), capture_output=True, timeout=DEADLINE_SECONDS)

        yield run_text


def test_a_module_is_run_as_a_program(module):
    ended = module("""
import pathlib, sys
if __name__ == "__main__":
    print(pathlib.Path(sys.argv[0]).name, sys.argv[1:], sys.stdin.read())
    print("said", file=sys.stderr)
    sys.exit(7)
""", "-m", "a b")
    assert (ended.returncode, ended.stdout, ended.stderr) == (7, "program.py ['-m', 'a b'] given\n", "said\n")


def test_a_program_ends_as_python_does(module):
    assert module("").returncode == 0
    said = module("raise SystemExit('wrong')")
    assert (said.returncode, said.stderr) == (1, "wrong\n")
    failed = module("raise ValueError('wrong')")
    assert failed.returncode == 1 and failed.stderr.endswith("ValueError: wrong\n")
    late = module("""
import atexit, ctypes, threading
atexit.register(print, "third")
def second():
    go.wait()
    print("second", end=" ")
go = threading.Event()
threading.Thread(target=second).start()
ctypes.CDLL(None).printf(b"of C\\n")
print("first", end=" ")
go.set()
""")
    assert (late.returncode, sorted(late.stdout.splitlines())) == (0, ["first second third", "of C"]), late.stderr


def test_a_fork_has_as_many_threads_as_its_environment_says(tmp_path):
    """PyTorch has read the variable when the process forks."""
    (tmp_path / "torch.py").write_text("set = []\nset_num_threads = set.append\n")
    (tmp_path / "shown.py").write_text("import torch\nprint(torch.set)\n")
    with warm(tmp_path, "torch", PYTHONPATH=str(tmp_path)) as path:
        for more, shown in (({"OMP_NUM_THREADS": "3"}, "[3]\n"), ({}, "[]\n")):
            found = subprocess.run([sys.executable, TESTS / "run_module.py", "shown"], cwd=tmp_path, capture_output=True, text=True,
                                   env={**environment(SACCADE_WARM_PYTHON=str(path)), **more}, timeout=DEADLINE_SECONDS)
            assert found.stdout == shown, found.stderr


def test_garbage_collections_of_a_fork_skip_what_was_imported_before(tmp_path):
    (tmp_path / "shown.py").write_text("import gc\nprint(gc.get_freeze_count() > 1000)\n")
    with warm(tmp_path) as path:
        found = subprocess.run([sys.executable, TESTS / "run_module.py", "shown"], cwd=tmp_path, capture_output=True, text=True,
                               env=environment(SACCADE_WARM_PYTHON=str(path)), timeout=DEADLINE_SECONDS)
    assert found.stdout == "True\n", found.stderr


WAITING = """
import os, pathlib, threading
def test_it():
    pathlib.Path("pid").write_text(str(os.getpid()))
    threading.Event().wait()
"""


def gone(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().split()[2] == "Z"
    except FileNotFoundError:
        return True


def test_a_test_whose_caller_is_killed_ends(tmp_path):
    with warm(tmp_path) as path:
        caller = subprocess.Popen(command(tmp_path, WAITING), cwd=tmp_path, env=environment(SACCADE_WARM_PYTHON=str(path)))
        written = tmp_path / "pid"
        eventually(lambda: written.exists() and written.read_text(), "the test runs")
        caller.kill()
        caller.wait()
        eventually(lambda: gone(int(written.read_text())), "the test has ended")


def test_tests_run_beside_each_other(tmp_path):
    """Each waits for the other."""
    meet = """
import os, pathlib
def test_it():
    pathlib.Path("{0}").touch()
    while not os.path.exists("{1}"):
        os.sched_yield()
"""
    with warm(tmp_path) as path:
        callers = []
        for name, other in (("a", "b"), ("b", "a")):
            folder = tmp_path / f"test_{name}"
            folder.mkdir()
            callers.append(subprocess.Popen(command(folder, meet.format(tmp_path / name, tmp_path / other)), cwd=tmp_path,
                                            env=environment(SACCADE_WARM_PYTHON=str(path)), stdout=subprocess.DEVNULL))
        assert [caller.wait(DEADLINE_SECONDS) for caller in callers] == [0, 0]


def test_the_process_ends_with_who_started_it(tmp_path):
    starter = f"""
import subprocess, sys
print(subprocess.Popen([sys.executable, {str(TESTS / "warm_python.py")!r}, sys.argv[1]]).pid, flush=True)
sys.stdin.read()
"""
    path = tmp_path / "socket"
    with subprocess.Popen([sys.executable, "-c", starter, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as running:
        pid = int(running.stdout.readline())
        eventually(path.exists, "the process listens")
        assert not gone(pid)
        running.kill()
    eventually(lambda: gone(pid), "the process has ended")
