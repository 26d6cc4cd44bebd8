"""Sends sample pictures for every task with the saccade command and returns the results."""

import json
import subprocess
import sys

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


def ask(command, url, model, task, samples, out):
    """Returns the results in the command's document; ends the demo if a request failed."""
    files = sorted(samples.glob(SAMPLES[task]))
    if not files:
        return []
    out.mkdir(parents=True, exist_ok=True)
    arguments = [command, *COMMANDS[task], "--url", url, "--model", model, "--json", "--quiet", "--output", out, *files]
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


def picture_of(result):
    return next((result[name] for name in PICTURES if name in result), None)
