"""Tests the precision in which the daemon computes a model: the one that is configured, or with `auto` the one that the
model's samples speak for, told in the log, the model's description and a metric."""

import re
import shutil

import pytest

from harness import ROOT, eventually, run_to_end
from messages import message
from models.reference.served import multiplies_bfloat16

DEMO = ROOT / "models" / "demo"
SAMPLES = {
    "sanet_shapes": sorted((DEMO / "pictures").glob("*.jpg")),
    "detector": sorted((DEMO / "scenes").glob("*.png")),
    "segmenter": sorted((DEMO / "scenes").glob("*.png")),
    "stereo_matcher": sorted((DEMO / "pairs").glob("*.png")),
    "denoiser": sorted((DEMO / "volumes").glob("*.tif")),
}
# Their probabilities and voxels are other numbers in bf16; findings, labels of pixels and disparities within a pixel need not be.
ALWAYS_CHANGED = ("sanet_shapes", "denoiser")
# Any answer may change: what is chosen then depends on the processor and the speed alone.
ANY_LOSS = {"precision": "auto", "max_precision_loss": "1"}


needs_bfloat16 = pytest.mark.skipif(not multiplies_bfloat16(), reason="this processor does not multiply bfloat16 itself")


def add(repository, name, parameters, samples=(), source="sanet_shapes"):
    """Adds a model of the demo with further parameters and the samples."""
    folder = repository / name
    shutil.copytree(DEMO / "repository" / source, folder)
    config = (folder / "config.pbtxt").read_text().replace(f'name: "{source}"', f'name: "{name}"')
    for key, value in parameters.items():
        config += f'parameters {{ key: "{key}" value {{ string_value: "{value}" }} }}\n'
    (folder / "config.pbtxt").write_text(config)
    if samples:
        (folder / "samples").mkdir()
        for sample in samples:
            shutil.copy(sample, folder / "samples")


def listed(daemon):
    with daemon.vision() as vision:
        answer = vision.list_models(message("saccade.v1.ListModelsRequest")())
    return {model.name: model for model in answer.models}


def test_a_model_without_the_option_is_fp32(start, tmp_path):
    add(tmp_path, "plain", {})
    daemon = start(tmp_path).await_ready()
    assert listed(daemon)["plain"].precision == "fp32"
    assert daemon.metrics().value("saccade_model_precision_info", model="plain", version="1", precision="fp32") == 1


@needs_bfloat16
def test_bf16_is_used_where_it_is_set(start, tmp_path):
    add(tmp_path, "coarse", {"precision": "bf16"})
    add(tmp_path, "plain", {})
    daemon = start(tmp_path).await_ready()
    model = listed(daemon)["coarse"]
    assert (model.precision, model.precision_reason) == ("bf16", "set in the configuration")
    assert daemon.metrics().value("saccade_model_precision_info", model="coarse", version="1", precision="bf16") == 1
    picture = {"encoded": SAMPLES["sanet_shapes"][0].read_bytes()}
    with daemon.vision() as vision:
        coarse, plain = (vision.predict(message("saccade.v1.PredictRequest")(model=name, **picture)).classification.classes[0]
                         for name in ("coarse", "plain"))
    assert coarse.label == plain.label and coarse.logit != plain.logit


def test_bf16_that_the_processor_lacks_is_told(start, tmp_path):
    if multiplies_bfloat16():
        pytest.skip("this processor multiplies bfloat16")
    add(tmp_path, "coarse", {"precision": "bf16"})
    add(tmp_path, "plain", {})
    daemon = start(tmp_path, "--exit-on-error=false", "--strict-readiness=false").await_ready()
    assert "avx512_bf16" in listed(daemon)["coarse"].reason and listed(daemon)["plain"].precision == "fp32"


@needs_bfloat16
@pytest.mark.parametrize("source", sorted(SAMPLES))
def test_auto_measures_the_samples_of_each_task(start, tmp_path, source):
    add(tmp_path, "chosen", ANY_LOSS, SAMPLES[source], source)
    add(tmp_path, "strict", {"precision": "auto", "max_precision_loss": "0"}, SAMPLES[source], source)
    daemon = start(tmp_path, "--log-format=text").await_ready()
    chosen, strict = listed(daemon)["chosen"], listed(daemon)["strict"]
    count = len(SAMPLES[source]) // (2 if source == "stereo_matcher" else 1)
    if chosen.precision == "bf16":
        assert f"of the answers to {count} samples, and takes" in chosen.precision_reason
    else:  # a network this small may be no faster
        assert "is not clearly faster" in chosen.precision_reason
    changed = re.fullmatch(rf"bf16 changes (\S+) % of the answers to {count} samples, more than max_precision_loss allows, 0 %",
                           strict.precision_reason)
    if changed:
        assert strict.precision == "fp32" and float(changed[1]) > 0
    else:  # no answer may have changed
        assert source not in ALWAYS_CHANGED, strict.precision_reason
        same = {"fp32": "bf16 is not clearly faster: ", "bf16": f"bf16 changes 0 % of the answers to {count} samples, and takes "}
        assert strict.precision_reason.startswith(same[strict.precision])
    # Both measured the same answers.
    if chosen.precision == "bf16":
        assert chosen.precision_reason.startswith("bf16 changes 0 % ") == (changed is None)
    eventually(lambda: daemon.log().count("precision chosen") == 2, "the log tells both")
    assert daemon.metrics().value("saccade_model_precision_info", model="chosen", version="1", precision=chosen.precision) == 1


@needs_bfloat16
def test_the_next_start_remembers_what_the_samples_chose(start, tmp_path):
    """Until the weights or the samples change. The reason tells measured times, which would differ."""
    models, state = tmp_path / "models", f"--state-folder={tmp_path}/state"
    for name in ("chosen", "copy"):
        add(models, name, ANY_LOSS, SAMPLES["sanet_shapes"])

    def reasons():
        daemon = start(models, state).await_ready()
        found = {name: (model.precision, model.precision_reason) for name, model in listed(daemon).items()}
        eventually(lambda: re.search(r" I ready$", daemon.log(), re.MULTILINE), "all lines of the loads are written")
        earlier = re.findall(r"uses earlier measurements.*\bmodel=(\w+)", daemon.log())
        daemon.close()
        return found, set(earlier)

    measured, earlier = reasons()
    assert measured["copy"] == measured["chosen"] and earlier == {"copy"}
    again, earlier = reasons()
    assert again == measured and earlier == {"chosen", "copy"}
    next((models / "copy" / "samples").iterdir()).unlink()
    changed, earlier = reasons()
    assert changed["chosen"] == measured["chosen"] and earlier == {"chosen"}


def test_auto_without_samples_is_fp32(start, tmp_path):
    for name in ("chosen", "another"):
        add(tmp_path, name, {"precision": "auto"})
    daemon = start(tmp_path, "--log-format=text").await_ready()
    for model in listed(daemon).values():
        assert model.precision == "fp32"
        assert ("samples" if multiplies_bfloat16() else "avx512_bf16") in model.precision_reason
    eventually(lambda: daemon.log().count("precision chosen") == 2, "the log tells both")
    # What the processor lacks is a warning, once for all models.
    assert daemon.log().count("precision auto stays at fp32") == (0 if multiplies_bfloat16() else 1)


@needs_bfloat16
@pytest.mark.parametrize("content", [b"", b"not a picture", SAMPLES["denoiser"][0].read_bytes()[:1000]])
def test_a_sample_that_cannot_be_read_leaves_the_model_at_fp32(start, tmp_path, content):
    add(tmp_path, "chosen", ANY_LOSS, SAMPLES["sanet_shapes"][:2])
    (tmp_path / "chosen" / "samples" / "broken.jpg").write_bytes(content)
    model = listed(start(tmp_path).await_ready())["chosen"]
    assert model.precision == "fp32" and "broken.jpg" in model.precision_reason


@needs_bfloat16
@pytest.mark.parametrize("count", [1, 3])
def test_half_a_pair_is_no_sample(start, tmp_path, count):
    """The pictures of the wrong pairs are of one size, so nothing else tells them from the right ones."""
    add(tmp_path, "chosen", ANY_LOSS, SAMPLES["stereo_matcher"][:count], "stereo_matcher")
    model = listed(start(tmp_path).await_ready())["chosen"]
    assert model.precision == "fp32" and f"an odd number of pictures, {count}, so a left" in model.precision_reason


@needs_bfloat16
def test_a_file_that_is_no_picture_is_told_of_pairs(start, tmp_path):
    add(tmp_path, "chosen", ANY_LOSS, SAMPLES["stereo_matcher"], "stereo_matcher")
    (tmp_path / "chosen" / "samples" / "z.txt").write_text("What the pairs show.")
    model = listed(start(tmp_path).await_ready())["chosen"]
    assert model.precision == "fp32" and "a sample is no picture" in model.precision_reason and "z.txt" in model.precision_reason


@pytest.mark.parametrize("parameters, told", [
    ({"precision": "int4"}, "expected auto, fp32, tf32, bf16, fp16 or int8"),
    ({"precision": "fp16"}, "needs a GPU"),
    ({"precision": "auto", "max_precision_loss": "5%"}, "expected a number from 0 to 1"),
    ({"precision": "auto", "max_precision_loss": "nan"}, "expected a number from 0 to 1"),
], ids=str)
def test_wrong_values_are_refused(tmp_path, parameters, told):
    add(tmp_path, "wrong", parameters)
    checked = run_to_end("--model-repository", tmp_path, "--check-config")
    assert checked.returncode != 0 and told in checked.stdout + checked.stderr
