"""clang-tidy on the sources that changed. Called by tools/lint:

    python tools/tidy.py CLANG_TIDY DATABASE JOBS SECONDS STAMP [--all]

DATABASE is the folder of compile_commands.json. Files are read until SECONDS are over (0: no limit). A finding makes the exit
code 1, also if the time is over after it.

Reads what differs from origin/main. Where nothing does, which is so in a clone of main, it reads what has changed since the commit
that STAMP names: up to there everything was clean. Without such a stamp that is HEAD~1. STAMP also has the files that were clean
when the time was over, so that the next run goes on with the others. With --all, it reads all sources."""

import argparse
import concurrent.futures
import hashlib
import json
import os
import pathlib
import subprocess
import sys
import time

# The exit code of timeout(1) if the command was stopped.
STOPPED = 124
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
    """The commit up to which everything was clean, and which files that changed later were clean too."""

    def __init__(self, path: pathlib.Path):
        self._path = path
        try:
            kept = json.loads(path.read_text(encoding="utf-8"))
            self.commit, self.clean = kept["commit"], set(kept["clean"])
        except (OSError, ValueError, KeyError, TypeError):
            self.commit, self.clean = None, set()
        # The commit may be one of another branch, or of a history that was rewritten.
        if not self.commit or git("merge-base", "--is-ancestor", self.commit, "HEAD") is None:
            self.commit, self.clean = commit("HEAD~1"), set()

    def write(self) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._path.write_text(json.dumps({"commit": self.commit, "clean": sorted(self.clean)}), encoding="utf-8")


def content(file: str) -> str:
    """Stands for the file with what it has now."""
    return hashlib.sha256(file.encode() + b"\0" + pathlib.Path(file).read_bytes()).hexdigest()


def changed(base: str | None) -> list[str]:
    """The sources that differ from the commit, and those that git does not know."""
    differ = lines("diff", "--name-only", "--diff-filter=d", base, "--", "*.cc") if base else []
    return sorted({*differ, *lines("ls-files", "--others", "--exclude-standard", "--", "*.cc")})


def compiled(database: pathlib.Path, files: list[str]) -> list[str]:
    """Those of the files that have a compile command: a machine without nvcc leaves out the CUDA side."""
    known = {os.path.relpath(entry["file"]) for entry in json.loads((database / "compile_commands.json").read_text())}
    return [file for file in files if file in known]


def read(options: argparse.Namespace, files: list[str]) -> tuple[list[str], int]:
    """Returns the files that are clean, and the number of those that are not. The others were not read in time."""
    (options.database / "omp.h").write_text(OMP)
    deadline = time.monotonic() + options.seconds
    command = [options.clang_tidy, "--quiet", "-p", options.database, "--extra-arg=-Wno-unknown-warning-option",
               f"--extra-arg=-isystem{options.database.resolve()}"]

    def check(file: str) -> int:
        left = deadline - time.monotonic() if options.seconds else 0
        if options.seconds and left <= 0:
            return STOPPED
        # timeout also ends what clang-tidy's wheel starts.
        done = subprocess.run(["timeout", f"{left:.3f}", *command, file], capture_output=True, text=True, check=False)
        said = "".join(f"{line}\n" for line in (done.stdout + done.stderr).splitlines() if "warnings generated" not in line)
        if done.returncode != STOPPED:
            print(said, end="", file=sys.stderr, flush=True)
        return done.returncode

    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        codes = list(pool.map(check, files))
    return [file for file, code in zip(files, codes) if code == 0], sum(code not in (0, STOPPED) for code in codes)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("clang_tidy")
    parser.add_argument("database", type=pathlib.Path)
    parser.add_argument("jobs", type=int)
    parser.add_argument("seconds", type=float)
    parser.add_argument("stamp", type=pathlib.Path)
    parser.add_argument("--all", action="store_true")
    options = parser.parse_args(arguments)

    main_branch, head = commit("origin/main"), commit("HEAD")
    # Only where nothing differs from origin/main does the stamp tell what has not been read.
    stamp = None if options.all or (main_branch and main_branch != head) else Stamp(options.stamp)
    if options.all:
        wanted = sorted(lines("ls-files", "--cached", "--others", "--exclude-standard", "--", "*.cc"))
    else:
        wanted = changed(stamp.commit if stamp else main_branch)
    wanted = compiled(options.database, wanted)
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
