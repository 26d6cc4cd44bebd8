"""Puts synchronisation faults (faults.h) into the kernels, one at a time, and tells which the emulated tests notice: at
each place where threads meet or wait for copies a barrier or a wait is left out, or lanes are exchanged. On a GPU such
faults show only now and then.

    python -m kernels.emulator.faults [--tests WORD,...] [--one-of-a-kind] [WORD...]     places that contain one of the words

Called by ./dev faults.
"""

import argparse
import concurrent.futures
import os
import pathlib
import subprocess
import sys
import tempfile
import time

# A fault can make a kernel wait for ever; without one an emulated test takes up to a minute.
LIMIT_SECONDS = 900

# Places where a fault changes nothing, with the reason.
HARMLESS = {}


def run(program, **environment):
    """The exit code of an emulated test; 1 if it does not end."""
    line = [program, "--gtest_fail_fast", "--gtest_brief=1"]
    try:
        return subprocess.run(line, env=os.environ | environment, capture_output=True, timeout=LIMIT_SECONDS).returncode
    except subprocess.TimeoutExpired:
        return 1


def each(function, values):
    """function(value) of all values, in order, on all cores."""
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        yield from zip(values, pool.map(function, values))


def find_places(programs):
    """The tests that reach each place. Those of the place's own folder are first, since they know the kernel best."""
    reached = {}
    with tempfile.TemporaryDirectory() as folder:

        def places_of(program):
            file = pathlib.Path(folder) / program.name
            if run(program, SACCADE_EMULATOR_PLACES=str(file)) != 0:
                raise RuntimeError(f"{program.name} fails without a fault")
            return file.read_text().splitlines()

        for program, places in each(places_of, programs):
            for place in places:
                reached.setdefault(place, []).append(program)
    for place, by in reached.items():
        by.sort(key=lambda program: not program.name.startswith(place.split("/")[-2]))
    return reached


def is_noticed(place, programs):
    return any(run(program, SACCADE_EMULATOR_FAULT=place) != 0 for program in programs)


def one_of_a_kind(places):
    """The first place of each kind in each file."""
    first = {}
    for place in sorted(places):
        first.setdefault(place.split(":")[0], place)
    return list(first.values())


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*")
    parser.add_argument("--one-of-a-kind", action="store_true", help="only the first place of each kind in each file")
    parser.add_argument("--tests", default="", metavar="WORD,...", help="only tests whose names contain one of these")
    parser.add_argument("--build", default=os.environ.get("SACCADE_BUILD_DIR", "build/release"), type=pathlib.Path)
    chosen = parser.parse_args(arguments)
    programs = [program for program in sorted((chosen.build / "tests").glob("*_emulated_test"))
                if any(word in program.name for word in chosen.tests.split(","))]
    if not programs:
        parser.error(f"{chosen.build / 'tests'} has no such emulated tests; expected builds of kernels/*/*_emulated_test.cc")
    print(f"looking for the places that {len(programs)} tests reach", flush=True)
    reached = find_places(programs)
    places = one_of_a_kind(reached) if chosen.one_of_a_kind else sorted(reached)
    if chosen.words:
        places = [place for place in places if any(word in place for word in chosen.words)]
    begun, missed = time.monotonic(), []
    for number, (place, noticed) in enumerate(each(lambda place: is_noticed(place, reached[place]), places), 1):
        word = "noticed" if noticed else "harmless" if place in HARMLESS else "MISSED"
        print(f"{number} of {len(places)}, {time.monotonic() - begun:.0f} s: {word} {place}", flush=True)
        if word == "MISSED":
            missed.append(place)
    kinds = sorted({place.split()[0] for place in places})
    print(f"{len(places)} faults ({', '.join(kinds)}), {len(missed)} missed")
    return 1 if missed or not places else 0


if __name__ == "__main__":
    sys.exit(main())
