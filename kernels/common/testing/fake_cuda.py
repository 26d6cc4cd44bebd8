"""Folders in which a program finds fakes of CUDA's driver, of LibTorch's CUDA library and of the plugin, in place of the
machine's."""

import os
import pathlib

DRIVER, TORCH, PLUGIN = "libcuda.so.1", "libtorch_cuda.so", "libsaccade_cuda.so"
NOT_A_LIBRARY = object()


def built(name):
    return pathlib.Path(os.environ["SACCADE_BUILD_DIR"]).resolve() / "lib" / name


def fake(name):
    return built(f"libsaccade_fake_{name}.so")


def make(folder, replaced=None):
    """Fills a new folder; returns the variables of the environment with which a program uses it. `replaced` maps DRIVER, TORCH
    or PLUGIN to another library, to NOT_A_LIBRARY for a file that is none, or to None for no file. The operators' library is
    found there too, so that it looks there for the plugin, which is in its own folder."""
    libraries = {DRIVER: fake("driver"), TORCH: fake("cuda_plugin"), PLUGIN: fake("cuda_plugin"), **(replaced or {})}
    folder.mkdir()
    (folder / "libsaccade_kernels.so").symlink_to(built("libsaccade_kernels.so"))
    for name, library in libraries.items():
        if library is NOT_A_LIBRARY:
            (folder / name).write_text("This is no library.\n")
        elif library is not None:
            assert library.exists(), library
            (folder / name).symlink_to(library)
    return {"LD_LIBRARY_PATH": str(folder), "SACCADE_FAKE_GPUS": "2"}
