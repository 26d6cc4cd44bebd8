"""clang-tidy on the sources that changed. Called by tools/lint:

    python tools/tidy.py CLANG_TIDY DATABASE JOBS SECONDS STAMP [--all [--under FOLDER]]

DATABASE is the folder of compile_commands.json. Files are read until SECONDS are over (0: no limit). A finding makes the exit
code 1, also if the time is over after it.

Reads what differs from origin/main. Where nothing does, which is so in a clone of main, it reads what has changed since the commit
that STAMP names: up to there everything was clean. Without such a stamp that is HEAD~1. STAMP also has the files that were clean
when the time was over, so that the next run goes on with the others.

With --all, it reads all sources (those in FOLDER): several at a time (tools/tidy_merged.py), because the headers of one take longer
than itself. What was clean is written to STAMP after each of these, so that the next run of --all goes on where one was stopped. A run
without --all reads no less because of it, as --all does not find everything (docs/decisions/0030-compile-time.md)."""

import argparse
import concurrent.futures
import functools
import hashlib
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

import thread_safety
import tidy_merged

GENERATED = re.compile(r"^\d+ (warning|error)s?\b.* generated\.$")
# The exit code of timeout(1) if the command was stopped.
STOPPED = 124
# Where clang-tidy's version is pinned.
PINNED = pathlib.Path("tools/setup/requirements/tests.in")
# clang-tidy's wheel has no omp.h, and GCC's is not for clang. LibTorch's headers and we need these functions of it.
OMP = "".join(f'extern "C" int omp_{name}(void);\n' for name in ("get_max_threads", "get_num_threads", "get_thread_num", "in_parallel"))


def git(*arguments: str) -> str | None:
    """Returns what git prints; None if it fails."""
    done = subprocess.run(["git", *arguments], capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else None


def lines(*arguments: str) -> list[str]:
    return (git(*arguments) or "").splitlines()


def commit(name: str) -> str | None:
    return git("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")


class Stamp:
    """The commit up to which everything was clean, which files that changed later were clean too, and which sources --all has found
    clean. The latter do not depend on the commit."""

    def __init__(self, path: pathlib.Path):
        self._path = path
        try:
            kept = json.loads(path.read_text(encoding="utf-8"))
            self.commit, self.clean, self.all = kept["commit"], set(kept["clean"]), set(kept.get("all", ()))
        except (OSError, ValueError, KeyError, TypeError):
            self.commit, self.clean, self.all = None, set(), set()
        self._kept = self.commit, self.clean
        # The commit may be one of another branch, or of a history that was rewritten.
        if not self.commit or git("merge-base", "--is-ancestor", self.commit, "HEAD") is None:
            self.commit, self.clean = commit("HEAD~1"), set()

    def write(self) -> None:
        self._write(self.commit, self.clean)

    def write_all(self) -> None:
        """Writes what --all has found clean, and leaves the rest of the file as it was."""
        self._write(*self._kept)

    def _write(self, clean_commit: str | None, clean: set[str]) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        # A run that is ended meanwhile leaves the old file.
        new = self._path.with_suffix(".new")
        new.write_text(json.dumps({"commit": clean_commit, "clean": sorted(clean), "all": sorted(self.all)}), encoding="utf-8")
        new.replace(self._path)


def content(file: str) -> str:
    """Stands for the file with what it has now."""
    return hashlib.sha256(file.encode() + b"\0" + pathlib.Path(file).read_bytes()).hexdigest()


@functools.cache
def digest(file: str) -> str:
    return hashlib.sha256(pathlib.Path(file).read_bytes()).hexdigest() if os.path.exists(file) else ""


@functools.cache
def pinned_version() -> str:
    text = PINNED.read_text(encoding="utf-8") if PINNED.exists() else ""
    return "".join(line for line in text.splitlines() if line.startswith("clang-tidy=="))


def content_with_headers(file: str, command: str) -> str:
    """Stands for all that decides what clang-tidy finds in a file: the file, this repository's headers that it includes, its compile
    command, every .clang-tidy above it, and clang-tidy's version."""
    settings = [str(folder / ".clang-tidy") for folder in pathlib.Path(file).parents]
    files = [file, *sorted(thread_safety.included([file])), *settings]
    parts = [pinned_version(), command, *(part for name in files for part in (name, digest(name)))]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def changed(base: str | None) -> list[str]:
    """The sources that differ from the commit, and those that git does not know."""
    differ = lines("diff", "--name-only", "--diff-filter=d", base, "--", "*.cc") if base else []
    return sorted({*differ, *lines("ls-files", "--others", "--exclude-standard", "--", "*.cc")})


def compile_commands(database: pathlib.Path) -> dict[str, str]:
    return {os.path.relpath(entry["file"]): entry.get("command", "") for entry in json.loads((database / "compile_commands.json").read_text())}


def compiled(database: pathlib.Path, files: list[str]) -> list[str]:
    """Those of the files that have a compile command: a machine without nvcc leaves out the CUDA side."""
    known = compile_commands(database)
    return [file for file in files if file in known]


class Reader:
    """Runs clang-tidy until the time is over."""

    def __init__(self, options: argparse.Namespace):
        (options.database / "omp.h").write_text(OMP)
        self._options, self._deadline = options, time.monotonic() + options.seconds
        self._running: set[subprocess.Popen] = set()
        self._stopped = False

    def stop(self) -> None:
        """Ends what runs, and starts nothing more."""
        self._stopped = True
        for process in list(self._running):
            process.terminate()

    def run(self, file: str, database: pathlib.Path, *more: str) -> tuple[int, str]:
        """Returns the exit code, STOPPED if the time is over, and the findings."""
        left = self._deadline - time.monotonic() if self._options.seconds else 0
        if self._stopped or (self._options.seconds and left <= 0):
            return STOPPED, ""
        command = [self._options.clang_tidy, "--quiet", "-p", database, "--extra-arg=-Wno-unknown-warning-option",
                   f"--extra-arg=-isystem{self._options.database.resolve()}", *more, file]
        # timeout also ends what clang-tidy's wheel starts.
        with subprocess.Popen(["timeout", f"{left:.3f}", *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            self._running.add(process)
            out, errors = process.communicate()
        self._running.discard(process)
        if self._stopped or process.returncode == STOPPED:
            return STOPPED, ""
        return process.returncode, "".join(f"{line}\n" for line in (out + errors).splitlines() if not GENERATED.search(line))


def read(options: argparse.Namespace, files: list[str]) -> tuple[list[str], int]:
    """Returns the files that are clean, and the number of those that are not. The others were not read in time."""
    reader = Reader(options)

    def check(file: str) -> int:
        code, said = reader.run(file, options.database)
        print(said, end="", file=sys.stderr, flush=True)
        return code

    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        codes = list(pool.map(check, files))
    return [file for file, code in zip(files, codes) if code == 0], sum(code not in (0, STOPPED) for code in codes)


def read_all(options: argparse.Namespace, stamp: Stamp) -> int:
    """Reads all sources that are not known to be clean, several at a time. Returns the exit code."""
    tracked = lines("ls-files", "--cached", "--others", "--exclude-standard", "--", "*.cc")
    everything = compiled(options.database, sorted(file for file in tracked if os.path.exists(file)))
    commands = compile_commands(options.database)
    names = {file: content_with_headers(file, commands[file]) for file in everything}
    stamp.all &= set(names.values())
    files = [file for file in everything if names[file] not in stamp.all and file.startswith(options.under)]
    batches = tidy_merged.batches(options.database, files)
    print(f"==> clang-tidy: {len(files)} of {len(everything)} files in {len(batches)} parts; the others were clean, or are not below "
          f"'{options.under}'", file=sys.stderr, flush=True)
    reader, begun, seen, failed = Reader(options), time.monotonic(), 0, 0

    def check(batch: tidy_merged.Batch) -> tuple[int, str]:
        code, said = reader.run(str(batch.file), batch.database, *batch.options)
        if len(batch.sources) == 1 or not tidy_merged.COMPILER_ERROR.search(said):
            return code, batch.named(said)
        # These do not compile together, for example because of a name that two of them define.
        ran = [reader.run(file, options.database, *tidy_merged.OPTIONS) for file in batch.sources]
        return max((code for code, _ in ran), key=lambda code: (code not in (0, STOPPED), code)), "".join(said for _, said in ran)

    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        running = {pool.submit(check, batch): batch for batch in batches}
        try:
            for done in concurrent.futures.as_completed(running):
                (code, said), sources = done.result(), running[done].sources
                if code == STOPPED:
                    continue
                seen += len(sources)
                failed += code != 0
                if code == 0:
                    stamp.all |= {names[file] for file in sources}
                    stamp.write_all()
                seconds = time.monotonic() - begun
                print(f"{said}==> clang-tidy: {seen} of {len(files)} files in {seconds:.0f} s, "
                      f"about {seconds / seen * (len(files) - seen):.0f} s left", file=sys.stderr, flush=True)
        except BaseException:
            # The pool would otherwise read the rest before it ends.
            pool.shutdown(wait=False, cancel_futures=True)
            reader.stop()
            raise
    if seen < len(files):
        print(f"==> clang-tidy: stopped after {options.seconds:g} s; the next ./dev lint --all goes on with the rest", file=sys.stderr)
    if failed:
        print(f"==> clang-tidy: findings in {failed} of {len(batches)}; when they are mended, the next ./dev lint --all reads these again",
              file=sys.stderr)
    return 1 if failed else 0


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("clang_tidy")
    parser.add_argument("database", type=pathlib.Path)
    parser.add_argument("jobs", type=int)
    parser.add_argument("seconds", type=float)
    parser.add_argument("stamp", type=pathlib.Path)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--under", default="", metavar="FOLDER")
    options = parser.parse_args(arguments)
    if options.under and not options.all:
        parser.error("--under FOLDER is an option of --all")
    if options.all:
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        try:
            return read_all(options, Stamp(options.stamp))
        except KeyboardInterrupt:
            print("==> clang-tidy: interrupted; the next ./dev lint --all goes on with the rest", file=sys.stderr)
            return 130

    main_branch, head = commit("origin/main"), commit("HEAD")
    # Only where nothing differs from origin/main does the stamp tell what has not been read.
    stamp = None if main_branch and main_branch != head else Stamp(options.stamp)
    wanted = compiled(options.database, changed(stamp.commit if stamp else main_branch))
    files = [file for file in wanted if not stamp or content(file) not in stamp.clean]
    print(f"==> clang-tidy: {len(files)} files", file=sys.stderr, flush=True)
    clean, failed = read(options, files)
    left = len(files) - len(clean) - failed
    if left:
        rest = "the next run of ./dev lint reads the rest, and ./dev lint --all reads all" if stamp else "./dev lint --all reads all"
        print(f"==> clang-tidy: stopped after {options.seconds:g} s with {len(files) - left} of {len(files)} files read; {rest}",
              file=sys.stderr)
    if stamp:
        stamp.clean |= {content(file) for file in clean}
        if len(clean) == len(files) and not lines("status", "--porcelain", "--", "*.cc", "*.h"):
            stamp.commit, stamp.clean = head, set()
        stamp.write()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
