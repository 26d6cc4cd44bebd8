"""Packs what a machine with a GPU needs to serve, and that it need not have: the programs of a release build without
symbols, the operators, and the libraries of this distribution that they load. LibTorch is not packed: the machine's
Python has it (torch of the same version), and CUDA's driver is the machine's own.

usage: python -m tools.gpu_stage [--build DIR] [--target FILE]

There, `python3 -m tarfile -e build/gpu/saccade.tar.xz FOLDER` makes a build folder (bin, lib, tests) whose programs run as
usual: `FOLDER/bin/saccaded --help`. They find LibTorch beside $SACCADE_PYTHON, or beside python3.

Libraries that the programs name but that no JPEG or PNG needs, the largest part of all, are packed as stand-ins, which
have their symbols and do nothing (stand_ins.py): a video, and a picture in a rare format, cannot be decoded there.
"""

import argparse
import importlib.util
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile

from tools.gpu_stage.stand_ins import write_stand_in

PROGRAMS = ("bin/saccaded", "bin/saccade-decode-worker", "bin/saccade_time_model", "tests/saccade_run_model")
OPERATORS = ("libsaccade_kernels.so", "libsaccade_cuda.so")
# Every machine that runs the wheel of torch has these, in a version that is not older.
OF_THE_SYSTEM = re.compile(r"^(ld-linux-x86-64|libc|libm|libdl|libpthread|librt|libutil|libstdc\+\+|libgcc_s)\.so\.")
# FFmpeg, OpenCV's linear algebra and windows, and what sends traces and events.
STAND_INS = ("libavformat.so.59", "libavcodec.so.59", "libswscale.so.6", "libavutil.so.57", "liblapack.so.3",
             "libblas.so.3", "libGLX.so.0", "libcurl.so.4")


def run(*command) -> str:
    return subprocess.run([str(word) for word in command], check=True, capture_output=True, text=True).stdout


def named_libraries(file: pathlib.Path) -> list[str]:
    return re.findall(r"\(NEEDED\).*\[(.*)\]", run("readelf", "-d", file))


def loaded_libraries(file: pathlib.Path) -> dict[str, pathlib.Path]:
    """Returns where this machine has each library that the file needs, directly or not."""
    found = {}
    torch = pathlib.Path(importlib.util.find_spec("torch").submodule_search_locations[0])
    wheels = ":".join(map(str, (torch / "lib", *torch.parent.glob("nvidia/*/lib"))))
    for line in run("env", f"LD_LIBRARY_PATH={wheels}", "ldd", file).splitlines():
        if "not found" in line:
            sys.exit(f"{file}: {line.strip()}; expected a machine on which it runs")
        if match := re.match(r"\s*(\S+) => (/\S+)", line):
            found[match[1]] = pathlib.Path(match[2])
    return found


def is_of_a_wheel(library: pathlib.Path) -> bool:
    return "site-packages" in library.parts


def needed(file: pathlib.Path, found: dict[str, pathlib.Path], packed: dict[str, pathlib.Path]):
    """Adds the libraries to pack for a file to `packed`, by the names under which they are looked for."""
    for name in named_libraries(file):
        if name in packed or OF_THE_SYSTEM.match(name) or is_of_a_wheel(found[name]):
            continue
        packed[name] = found[name]
        if name not in STAND_INS:
            needed(found[name], found, packed)


def stage(build: pathlib.Path, folder: pathlib.Path):
    for name in ("bin", "tests", "lib", "programs"):
        (folder / name).mkdir()
    packed: dict[str, pathlib.Path] = {}
    for path in PROGRAMS:
        needed(build / path, loaded_libraries(build / path), packed)
        program = folder / "programs" / pathlib.Path(path).name
        shutil.copy(build / path, program)
        run("strip", program)
        # An rpath, which libraries of libraries are looked up in too, unlike a runpath.
        run("patchelf", "--force-rpath", "--set-rpath", "$ORIGIN/../lib", program)
        start = folder / path
        shutil.copy(pathlib.Path(__file__).parent / "start", start)
    for name in OPERATORS:
        library = folder / "lib" / name
        shutil.copy(build / "lib" / name, library)
        run("strip", "--strip-unneeded", library)
        run("patchelf", "--set-rpath", "$ORIGIN", library)
        packed.pop(name, None)
    for name, path in packed.items():
        if name not in STAND_INS:
            shutil.copy(path.resolve(), folder / "lib" / name)
    users = [*(folder / "programs").iterdir(), *(folder / "lib").iterdir()]
    for name in sorted(set(packed) & set(STAND_INS)):
        write_stand_in(packed[name], name, users, folder / "lib" / name)
    require_complete(folder)


def require_complete(folder: pathlib.Path):
    """Exits if a program would load a library that the other machine may lack."""
    for program in (folder / "programs").iterdir():
        for name, path in loaded_libraries(program).items():
            if not (OF_THE_SYSTEM.match(name) or is_of_a_wheel(path) or path.is_relative_to(folder)):
                sys.exit(f"{program.name} would load {path}, which is not packed")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build/release"))
    parser.add_argument("--target", type=pathlib.Path, default=pathlib.Path("build/gpu/saccade.tar.xz"))
    arguments = parser.parse_args()
    missing = [str(path) for path in (*(arguments.build / name for name in PROGRAMS),
                                      *(arguments.build / "lib" / name for name in OPERATORS)) if not path.exists()]
    if missing:
        return f"{', '.join(missing)}: not built; run ./dev build on a machine with nvcc"
    if shutil.which("patchelf") is None:
        return "no patchelf; expected the Debian package of that name, which ./dev setup tests installs"
    arguments.target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        stage(arguments.build, pathlib.Path(folder))
        with tarfile.open(arguments.target, "w:xz", preset=1) as archive:
            for name in sorted(os.listdir(folder)):
                archive.add(pathlib.Path(folder) / name, name)
    print(f"{arguments.target}: {arguments.target.stat().st_size / 1e6:.1f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
