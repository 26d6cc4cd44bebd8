"""Writes samples of the scenes as the files that clients send."""

import pathlib

from PIL import Image

from models.reference.scenes import stereo, volumes


def write(sample, folder: pathlib.Path, name: str):
    """Writes a picture as NAME.png, a stereo pair as NAME-left.png and NAME-right.png, the noisy volume as NAME.tif."""
    if isinstance(sample, volumes.Volume):
        pages = [Image.fromarray(plane) for plane in sample.noisy.round().clip(0).astype("uint16")]
        pages[0].save(folder / f"{name}.tif", save_all=True, append_images=pages[1:], compression="tiff_adobe_deflate")
    elif isinstance(sample, stereo.Pair):
        Image.fromarray(sample.left).save(folder / f"{name}-left.png")
        Image.fromarray(sample.right).save(folder / f"{name}-right.png")
    else:
        Image.fromarray(sample.picture).save(folder / f"{name}.png")
