"""Checks which sources tools/tidy.py reads, and that no finding is lost, with a program in clang-tidy's place."""

import json
import os
import pathlib
import signal
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))

import tidy_merged  # noqa: E402

# A finding is a line with BAD. A name is defined twice where there are two lines with CLASH.
CLANG_TIDY = """#!/usr/bin/env bash
file="${*: -1}"
echo "$file" >>"$READ"
if [ "$(grep -c CLASH "$file")" -gt 1 ]; then echo "$file:1:1: error: redefinition [clang-diagnostic-error]"; exit 1; fi
grep -q BAD "$file" || exit 0
grep -nH BAD "$file" | sed 's/BAD/1: BAD/'
exit 1
"""
# The time is over while a file with SLOW is read.
TIMEOUT = """#!/usr/bin/env bash
if grep -q SLOW "${*: -1}"; then exit 124; fi
exec "${@:2}"
"""


class Checkout:
    """A repository with sources of which each is a compile command."""

    def __init__(self, folder: pathlib.Path):
        self.root, self.stamp, self._read = folder / "checkout", folder / "cache" / "tidy.json", folder / "read"
        self.options = ""
        self.root.mkdir()
        self._database = folder / "database"
        self._database.mkdir()
        self._programs = folder / "bin"
        self._programs.mkdir()
        for name, text in {"clang-tidy": CLANG_TIDY, "timeout": TIMEOUT}.items():
            (self._programs / name).write_text(text)
            (self._programs / name).chmod(0o755)
        self.git("init", "--quiet", "--initial-branch=main")

    def git(self, *arguments: str) -> str:
        author = ("-c", "user.name=nobody", "-c", "user.email=nobody@localhost")
        done = subprocess.run(["git", *author, *arguments], cwd=self.root, check=True, capture_output=True, text=True)
        return done.stdout.strip()

    def commit(self, **files: str) -> str:
        for name, text in files.items():
            self.write(f"{name}.cc", text)
        self.git("add", ".")
        self.git("commit", "--quiet", "--message", "sources")
        return self.git("rev-parse", "HEAD")

    def write(self, name: str, text: str) -> None:
        (self.root / name).parent.mkdir(parents=True, exist_ok=True)
        (self.root / name).write_text(text)

    def replace(self, program: str, text: str) -> None:
        (self._programs / program).write_text(text)

    def lint_in_background(self, *options: str, seconds: float = 0) -> subprocess.Popen:
        commands = [{"file": str(file), "directory": str(self.root), "command": f"c++ {self.options} -o {file}.o -c {file}"}
                    for file in sorted(self.root.rglob("*.cc"))]
        (self._database / "compile_commands.json").write_text(json.dumps(commands))
        self._read.write_text("")
        command = [sys.executable, ROOT / "tools" / "tidy.py", self._programs / "clang-tidy", self._database, "1", str(seconds), self.stamp]
        # A shell's background jobs ignore SIGINT, and so would all that they start.
        heed = lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)
        return subprocess.Popen([*command, *options], cwd=self.root, preexec_fn=heed, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                                env={"PATH": f"{self._programs}:/usr/bin:/bin", "READ": str(self._read)})

    def lint(self, *options: str, seconds: float = 0) -> tuple[int, list[str], str]:
        """Returns the exit code, the files that were read, and what was printed."""
        with self.lint_in_background(*options, seconds=seconds) as running:
            _, said = running.communicate()
        return running.returncode, self._read.read_text().split(), said


@pytest.fixture
def checkout(tmp_path):
    made = Checkout(tmp_path)
    made.commit(first="", other="")
    return made


def test_a_finding_is_kept_when_the_time_is_over(checkout):
    checkout.commit(a_bad="BAD", b_slow="SLOW")
    code, read, said = checkout.lint(seconds=600)
    assert (code, read) == (1, ["a_bad.cc"])
    assert "a_bad.cc:1:1: BAD" in said and "stopped after 600 s with 1 of 2 files read" in said


def test_time_that_is_over_is_no_failure(checkout):
    checkout.commit(slow="SLOW")
    assert checkout.lint(seconds=600)[0] == 0
    assert checkout.lint(seconds=1e-9)[:2] == (0, [])


def test_main_is_read_since_the_commit_that_was_clean(checkout):
    checkout.commit(first="1", other="1")
    assert checkout.lint()[:2] == (0, ["first.cc", "other.cc"])
    assert checkout.lint()[:2] == (0, [])
    checkout.commit(first="BAD")
    checkout.commit(other="2")
    # The finding is not of the last commit; it is found until it is mended.
    assert checkout.lint()[:2] == (1, ["first.cc", "other.cc"])
    assert checkout.lint()[:2] == (1, ["first.cc"])
    checkout.commit(first="2")
    assert checkout.lint()[:2] == (0, ["first.cc"])
    assert checkout.lint()[:2] == (0, [])


def test_the_next_run_goes_on_with_what_was_not_read_in_time(checkout):
    checkout.commit(a_good="", b_slow="SLOW", c_good="")
    assert checkout.lint(seconds=600)[:2] == (0, ["a_good.cc", "c_good.cc"])
    checkout.commit(b_slow="")
    assert checkout.lint(seconds=600)[:2] == (0, ["b_slow.cc"])


def test_what_is_not_committed_does_not_move_the_stamp(checkout):
    head = checkout.commit(first="1")
    assert checkout.lint()[0] == 0
    (checkout.root / "first.cc").write_text("2")
    (checkout.root / "untracked.cc").write_text("")
    assert checkout.lint()[:2] == (0, ["first.cc", "untracked.cc"])
    assert json.loads(checkout.stamp.read_text())["commit"] == head


@pytest.mark.parametrize("stamp", ["", "{}", "[]", '{"commit": "0123456789012345678901234567890123456789", "clean": []}'])
def test_with_a_stamp_that_says_nothing_the_last_commit_is_read(checkout, stamp):
    checkout.commit(first="1")
    checkout.commit(other="1")
    checkout.stamp.parent.mkdir()
    checkout.stamp.write_text(stamp)
    assert checkout.lint()[:2] == (0, ["other.cc"])


def test_a_branch_is_compared_with_origins_main(checkout):
    checkout.git("update-ref", "refs/remotes/origin/main", "HEAD")
    checkout.commit(first="1")
    checkout.commit(other="1")
    for _ in range(2):
        assert checkout.lint()[:2] == (0, ["first.cc", "other.cc"])
    assert not checkout.stamp.exists()


def test_all_reads_several_at_once_and_names_their_lines(checkout):
    checkout.commit(first="int a;\nint b;", other="int c;\nBAD", third="int d;")
    code, read, said = checkout.lint("--all")
    assert code == 1 and len(read) == 1 and "/merged/" in read[0]
    assert "other.cc:2:1: BAD" in said and "3 of 3 files" in said


def test_what_all_has_found_clean_is_not_read_again(checkout):
    # Each in a file of its own, because they define the same name.
    checkout.commit(first="int a;\nBAD", other='#include "other.h"\nint a;', third="int a;")
    (checkout.root / "other.h").write_text("1")
    assert checkout.lint("--all")[:2] == (1, ["first.cc", "other.cc", "third.cc"])
    assert checkout.lint("--all")[:2] == (1, ["first.cc"])
    checkout.commit(first="int a;")
    assert checkout.lint("--all")[:2] == (0, ["first.cc"])
    assert checkout.lint("--all")[:2] == (0, [])
    # A header is part of those that include it.
    (checkout.root / "other.h").write_text("2")
    assert checkout.lint("--all")[:2] == (0, ["other.cc"])


def test_all_goes_on_where_it_was_stopped(checkout):
    checkout.commit(first="int a;", other="int a; // SLOW", third="int a;")
    code, read, said = checkout.lint("--all", seconds=600)
    assert (code, read) == (0, ["first.cc", "third.cc"]) and "goes on with the rest" in said
    checkout.commit(other="int a;")
    assert checkout.lint("--all", seconds=600)[:2] == (0, ["other.cc"])


def test_after_all_a_run_without_it_reads_as_much_as_before(checkout):
    """--all does not find everything."""
    checkout.commit(first="1")
    assert checkout.lint()[0] == 0
    checkout.commit(first="2")
    checkout.commit(other="2")
    assert checkout.lint("--all")[0] == 0
    assert checkout.lint()[:2] == (0, ["first.cc", "other.cc"])


def test_all_on_another_branch_leaves_the_stamp_of_main(checkout):
    clean = checkout.commit(first="1")
    assert checkout.lint()[0] == 0
    checkout.git("checkout", "--quiet", "--orphan", "another")
    checkout.commit(first="2")
    assert checkout.lint("--all")[0] == 0
    assert json.loads(checkout.stamp.read_text())["commit"] == clean


@pytest.mark.parametrize("settings, is_read", [(".clang-tidy", ["first.cc", "in/a/folder/third.cc", "other.cc"]),
                                               ("in/.clang-tidy", ["in/a/folder/third.cc"]),
                                               ("in/a/folder/.clang-tidy", ["in/a/folder/third.cc"])])
def test_all_reads_again_what_has_other_checks(checkout, settings, is_read):
    # Each is read alone, because all define the same name.
    checkout.commit(first="int a;", other="int a;", **{"in/a/folder/third": "int a;"})
    assert checkout.lint("--all")[0] == 0
    assert checkout.lint("--all")[:2] == (0, [])
    checkout.write(settings, "Checks: '*'")
    assert checkout.lint("--all")[:2] == (0, is_read)


def test_all_reads_again_with_another_clang_tidy(checkout):
    pinned = "tools/setup/requirements/tests.in"
    checkout.write(pinned, "clang-tidy==1\npytest==1\n")
    assert checkout.lint("--all")[0] == 0
    checkout.write(pinned, "clang-tidy==1\npytest==2\n")
    assert checkout.lint("--all")[:2] == (0, [])
    checkout.write(pinned, "clang-tidy==2\npytest==2\n")
    assert len(checkout.lint("--all")[1]) == 1


def test_all_reads_again_with_other_compile_options(checkout):
    assert checkout.lint("--all")[0] == 0
    assert checkout.lint("--all")[:2] == (0, [])
    checkout.options = "-DNDEBUG"
    assert len(checkout.lint("--all")[1]) == 1


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_all_ends_at_once_when_it_is_interrupted(checkout, tmp_path, sent):
    """The first source is read, and the second would take for ever."""
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    checkout.replace("clang-tidy", f'#!/usr/bin/env bash\ngrep -q SLOW "${{*: -1}}" || exit 0\necho $$ >{fifo}\nexec tail -f /dev/null\n')
    checkout.replace("timeout", '#!/usr/bin/env bash\nexec "${@:2}"\n')
    checkout.commit(first="int a;", other="int a; // SLOW", third="int a;")
    with checkout.lint_in_background("--all") as running:
        hanging = int(fifo.read_text())
        running.send_signal(sent)
        _, said = running.communicate()
    assert running.returncode == 130 and "goes on with the rest" in said
    assert not pathlib.Path(f"/proc/{hanging}").exists()


def test_sources_that_do_not_compile_together_are_read_alone(checkout):
    checkout.commit(first="// CLASH\nBAD", other="// CLASH", third="")
    code, read, said = checkout.lint("--all")
    assert code == 1 and "/merged/" in read[0] and read[1:] == ["first.cc", "other.cc", "third.cc"]
    assert "first.cc:2:1: BAD" in said and "redefinition" not in said


def test_all_in_one_folder_leaves_the_others(checkout):
    assert checkout.lint("--all", "--under", "fir")[:2] == (0, ["first.cc"])
    assert checkout.lint("--all")[:2] == (0, ["other.cc"])
    assert checkout.lint("--under", "fir")[0] == 2


@pytest.mark.parametrize("text, names", [
    ("TEST(Cache, Holds) {\nTEST_F(Cache, Drops) {\nTEST_P(Cache, Each) {", {"Cache_Holds", "Cache_Drops", "Cache_Each"}),
    ("class Fake : public Clock {\nstruct Key {\nenum class Kind { kOne };\nusing Map = std::map<int, int>;", {"Fake", "Key", "Kind", "Map"}),
    ("absl::StatusOr<int> Read(int a) {\nconstexpr int64_t kMany = 3;\nstd::string text;\nconst char kName[] = \"a\";", {"Read", "kMany", "text", "kName"}),
    ("template <class T>\nT Twice(T a) {", {"Twice"}),
    ("#define CHECK_IT(a) a", {"CHECK_IT"}),
    ("namespace saccade {\nnamespace {\n}  // namespace\nvoid Cache::Drop() {\nusing testing::Eq;\n  int inside = 3;\n// void Comment() {", set()),
])
def test_the_names_that_a_source_defines(text, names):
    assert tidy_merged.defined(text)[0] == names


@pytest.mark.parametrize("one, other, same", [
    ("void Read() {", "void Write() {\n  Read();", True),
    ("void Read() {", "int Read = 3;", False),
    # Elsewhere, Outcome is a type of a header.
    ("namespace {\nstruct Outcome {\n};\n}  // namespace", "void Write(Outcome a) {", False),
    ("namespace {\nint b;\n}  // namespace\nstruct Outcome {", "void Write(Outcome a) {", True),
    ("static int Read() {", "void Write() {\n  Read();", False),
    ("using Map = int;", "Map a;", False),
])
def test_names_mean_the_same_in_both_sources(one, other, same):
    for first, second in ((one, other), (other, one)):
        assert tidy_merged.Names(first).mean_the_same_with(tidy_merged.Names(second)) == same


def test_what_replaces_operator_new_is_read_alone(tmp_path):
    source = tmp_path / "allocations.cc"
    source.write_text("void* operator new(size_t size) {")
    assert tidy_merged.is_read_alone(str(source))
    source.write_text("int* Make() { return new int; }")
    assert not tidy_merged.is_read_alone(str(source))
