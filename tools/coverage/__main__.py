"""Runs the tests of some folders and reports their coverage.

Writes a table by folder and by file, one page per file, and the figures as JSON to build/coverage/report. Fails if a
folder's branch coverage is below the bound. Called by ./dev coverage, which has built everything."""

import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / "build" / "coverage"
# Required branch coverage of each entry in tools/coverage/rooms, in percent.
BOUND = 90

# Names of CMake targets, which are also ctest's names.
UNIT = {
    "batching": "batcher_test latency_model_test scheduler_test",
    "admission": "admission_test",
    "weights": "weights_format_test models_test fuzz_safetensors fuzz_state_dict fuzz_pickle",
    "protocols": "rest_test messages_test tensor_copies_test http_server_test inference_test ensemble_check_test "
    "ensemble_run_test tensor_calls_test fuzz_rest fuzz_inference fuzz_vision",
}
# Services and streams are reached only through the daemon: these tests of tests/e2e exercise most of them.
END_TO_END = {
    "protocols": "predict tasks actions restore rest compatibility triton_client triton_stream triton_extensions "
    "shared_memory standards ensembles programs bad_input malformed_input malformed_rest rest_extensions "
    "rest_shared_memory predict_stream explain regions predict_rest tls traces cache outside_faults",
}


def rooms():
    """Folders by name, from tools/coverage/rooms."""
    lines = (ROOT / "tools" / "coverage" / "rooms").read_text().splitlines()
    return {name: folders for name, *folders in map(str.split, lines)}


def chosen(table, names):
    return [word for name in names for word in table.get(name, "").split()]


def programs(names):
    """Paths of the instrumented programs."""
    folders = {True: "fuzzers", False: "tests"}
    paths = [BUILD / folders[test.startswith("fuzz_")] / test for test in chosen(UNIT, names)]
    return paths + [BUILD / "bin" / "saccaded"] * bool(chosen(END_TO_END, names))


def run_tests(names, jobs):
    """Returns whether all tests passed. Their profiles are in build/coverage/profiles."""
    profiles = BUILD / "profiles"
    shutil.rmtree(profiles, ignore_errors=True)
    profiles.mkdir(parents=True)
    tests = chosen(UNIT, names) + [f"e2e_{about}_test" for about in chosen(END_TO_END, names)]
    # %c: counters are written while the program runs, because the tests end daemons with SIGKILL.
    environment = {**os.environ, "LLVM_PROFILE_FILE": str(profiles / "%p%c.profraw")}
    pattern = "^({})$".format("|".join(tests))
    done = subprocess.run(["ctest", "--preset", "coverage", "-R", pattern, "-j", str(jobs), "--no-tests=error"],
                          cwd=ROOT, env=environment)
    return done.returncode == 0


def merge():
    profiles, merged = sorted((BUILD / "profiles").glob("*.profraw")), BUILD / "merged.profdata"
    # Programs without instrumented code write empty profiles.
    listed = BUILD / "profiles" / "list"
    listed.write_text("".join(f"{path}\n" for path in profiles if path.stat().st_size))
    subprocess.run(["llvm-profdata-16", "merge", "-sparse", "-failure-mode=all", "-f", listed, "-o", merged], check=True)
    return merged


def sources(folders):
    """The sources to measure: neither tests nor their helpers."""
    found = sorted(path for folder in folders for path in (ROOT / folder).rglob("*") if path.suffix in (".cc", ".h"))
    return [path for path in found if not path.stem.endswith("_test") and "testing" not in path.parts]


def llvm_cov(command, measured, merged, files, *options):
    first, *others = measured
    objects = [word for program in others for word in ("-object", program)]
    done = subprocess.run(["llvm-cov-16", command, first, *objects, f"-instr-profile={merged}", *options,
                           *files], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"coverage: llvm-cov-16 {command} failed: {done.stderr.strip()}")
    return done.stdout


def figures(exported, names):
    """(branches, lines, files) by entry: (covered, total) for the entry and for each of its files."""
    by_file = {pathlib.Path(file["filename"]).resolve().relative_to(ROOT).as_posix(): {
        what: (file["summary"][what]["covered"], file["summary"][what]["count"]) for what in ("branches", "lines")
    } for file in exported["data"][0]["files"]}
    table = {}
    for name, folders in names.items():
        files = {path: its for path, its in by_file.items() if any(path.startswith(f"{folder}/") for folder in folders)}
        total = {what: tuple(map(sum, zip((0, 0), *(its[what] for its in files.values())))) for what in ("branches", "lines")}
        table[name] = {**total, "files": files}
    return table


def percent(reached_and_all):
    reached, count = reached_and_all
    return 100 * reached / count if count else 100.0


def shown(name, its):
    branches, lines = its["branches"], its["lines"]
    return (f"{name:<44} {percent(branches):6.1f} % {branches[0]:>5} of {branches[1]:<5} "
            f"{percent(lines):6.1f} % {lines[0]:>5} of {lines[1]:<5}")


def print_table(table):
    print(f"{'':<44} {'branches':>22} {'lines':>22}")
    for name, room in table.items():
        print(shown(name, room))
        worst = sorted(room["files"].items(), key=lambda item: percent(item[1]["branches"]), reverse=True)
        for path, its in worst:
            print(shown(f"  {path}", its))


def main():
    known = rooms()
    parser = argparse.ArgumentParser(prog="./dev coverage", description=__doc__)
    parser.add_argument("rooms", nargs="*", metavar="ROOM", help=f"one of {', '.join(known)}; by default all")
    parser.add_argument("--targets", action="store_true", help="print the targets that must be built, and exit")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    given = parser.parse_args()
    if unknown := set(given.rooms) - set(known):
        parser.error(f"no room {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    names = {name: folders for name, folders in known.items() if name in (given.rooms or known)}
    if given.targets:
        print(*(path.name for path in programs(names)))
        return
    passed = run_tests(names, given.jobs)
    merged, measured = merge(), programs(names)
    files = sources(folder for folders in names.values() for folder in folders)
    report = BUILD / "report"
    shutil.rmtree(report, ignore_errors=True)
    llvm_cov("show", measured, merged, files, "-format=html", f"-output-dir={report}", "-show-branches=count")
    unmeasured = {path.relative_to(ROOT).as_posix() for path in files if path.suffix == ".cc"}
    table = figures(json.loads(llvm_cov("export", measured, merged, files, "-summary-only")), names)
    unmeasured.difference_update(*(room["files"] for room in table.values()))
    if unmeasured:
        sys.exit(f"coverage: these sources are in none of the programs that tools/coverage lists: {sorted(unmeasured)}")
    (report / "coverage.json").write_text(json.dumps(table, indent=1))
    print_table(table)
    print(f"uncovered code: {report.relative_to(ROOT)}/index.html; these figures: coverage.json beside it")
    below = [name for name, room in table.items() if percent(room["branches"]) < BOUND]
    problems = [f"fewer than {BOUND} % of the branches are reached in {', '.join(below)}"] * bool(below)
    problems += ["tests failed; the figures are of what they reached"] * (not passed)
    if problems:
        sys.exit(f"coverage: {'; '.join(problems)}")


main()
