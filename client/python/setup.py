"""Generates the messages of proto/saccade/v1 while the package is built; no generated file is in the repository."""

import pathlib
import shutil

from setuptools import setup
from setuptools.command.build_py import build_py
from setuptools.command.sdist import sdist

HERE = pathlib.Path(__file__).resolve().parent
# A source distribution contains a copy of proto/; a checkout has it at the repository's root.
PLACES = (HERE / "proto", HERE.parents[1] / "proto" if len(HERE.parents) > 1 else HERE / "proto")


def contract():
    for place in PLACES:
        if found := sorted((place / "saccade" / "v1").glob("*.proto")):
            return place, found
    raise SystemExit(f"saccade: found no saccade/v1/*.proto in {' or '.join(map(str, PLACES))}; build the package in a checkout or from a source distribution")


class BuildWithMessages(build_py):
    def run(self):
        super().run()
        import grpc_tools
        from grpc_tools import protoc

        place, files = contract()
        # The package's folders mirror the proto package, so the imports that protoc generates are correct as they are.
        out = HERE if self.editable_mode else pathlib.Path(self.build_lib)
        well_known = pathlib.Path(grpc_tools.__file__).parent / "_proto"
        options = [f"--{kind}={out}" for kind in ("python_out", "pyi_out", "grpc_python_out")]
        arguments = ["protoc", f"--proto_path={place}", f"--proto_path={well_known}", *options, *map(str, files)]
        if protoc.main(arguments) != 0:
            raise SystemExit("saccade: protoc failed; see its messages above")


class SourcesWithContract(sdist):
    def make_release_tree(self, base_dir, files):
        super().make_release_tree(base_dir, files)
        place, contents = contract()
        for file in contents:
            to = pathlib.Path(base_dir) / "proto" / file.relative_to(place)
            to.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, to)


setup(cmdclass={"build_py": BuildWithMessages, "sdist": SourcesWithContract})
