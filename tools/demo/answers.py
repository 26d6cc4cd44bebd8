"""Sends sample pictures for every task with the saccade command and returns the results."""

import json
import subprocess
import sys

from PIL import Image

# Where the samples of each task are in models/demo; for pairs, left and right in turn.
SAMPLES = {
    "classification": "pictures/*",
    "detection": "scenes/*",
    "segmentation": "scenes/*",
    "stereo": "pairs/*",
    "actions": "clips/*",
    "restoration": "volumes/*",
}
COMMANDS = {
    "classification": ["classify", "--top-k=3"],
    "detection": ["detect", "--score-threshold=0.3"],
    "segmentation": ["segment"],
    "stereo": ["stereo"],
    "actions": ["actions"],
    "restoration": ["restore"],
}
# Keys of a result's picture in the command's document.
PICTURES = ("overlay", "colored", "timeline", "plane")


def ask(command, url, model, task, samples, out, explain=False):
    """Returns the results in the command's document; ends the demo if a request failed. With `explain` they have
    attention maps, and are those of the first sample."""
    files = sorted(samples.glob(SAMPLES[task]))
    if not files:
        return []
    out.mkdir(parents=True, exist_ok=True)
    more = ["--explain", "--explain-maps=1"] if explain else []
    files = files[:1] if explain else files
    arguments = [command, *COMMANDS[task], *more, "--url", url, "--model", model, "--json", "--quiet", "--output", out, *files]
    done = subprocess.run(arguments, stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(f"demo: '{' '.join(map(str, arguments))}' ended with {done.returncode}")
    return json.loads(done.stdout)["results"]


def in_words(result):
    if "classes" in result:
        return ", ".join(f"{one['label']} {100 * one['probability']:.0f}%" for one in result["classes"][:2])
    if "detections" in result:
        return ", ".join(f"{one['label']} {100 * one['score']:.0f}%" for one in result["detections"][:4]) or "nothing"
    if "areas" in result:
        return ", ".join(f"{one['label']} {100 * one['fraction']:.0f}%" for one in result["areas"][:4])
    if "disparity" in result:
        return "{min:.1f} to {max:.1f} px, {mean:.1f} in the mean".format(**result["disparity"])
    if "actions" in result:
        return ", ".join(f"{one['label']} at {one['start_seconds']:.1f} s" for one in result["actions"][:3]) or "nothing"
    return "{depth}x{height}x{width} {type}".format(**result["volume"])


def in_grey(plane):
    """A picture of 8 bits, whose darkest and brightest thousandths are clipped, as the command draws planes."""
    plane = plane.convert("I").convert("F")
    values = sorted(plane.getdata())
    black, white = values[round(0.001 * (len(values) - 1))], values[round(0.999 * (len(values) - 1))]
    scale = 255 / max(white - black, 1)
    return plane.point(lambda value: value * scale - black * scale).convert("L")


def before_and_after(result):
    """The middle planes of the volume that was sent and of the restored one, side by side; returns the picture's path."""
    with Image.open(result["file"]) as volume:
        volume.seek(volume.n_frames // 2)
        before = in_grey(volume)
    with Image.open(result["plane"]) as plane:
        after = plane.convert("L")
    both = Image.new("L", (before.width + 4 + after.width, max(before.height, after.height)), 255)
    both.paste(before, (0, 0))
    both.paste(after, (before.width + 4, 0))
    path = f"{result['plane'].removesuffix('.png')}.before-and-after.png"
    both.save(path)
    return path


def picture_of(result):
    if "plane" in result:
        return before_and_after(result)
    return next((result[name] for name in PICTURES if name in result), None)
