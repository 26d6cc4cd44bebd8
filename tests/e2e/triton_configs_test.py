"""Checks configurations as public model repositories have them. Each is either taken, taken with a warning, or refused
with the reason that docs/compatibility.md has for its field."""

import re

import pytest
import torch

from ensembles_test import step
from harness import ROOT, START_SECONDS, run_to_end
from programs_test import ALLOW, write

PAGE = (ROOT / "docs" / "compatibility.md").read_text()
NOTES = {field: (state, note) for field, state, note in re.findall(
    r"^\| `([\w.]+)` \| (works|passed over|refused) \| (.*?) \|$", PAGE.split("## Model configuration")[1], re.MULTILINE)}

IO = ('input [ { name: "INPUT__0" data_type: TYPE_FP32 dims: [ 3, 224, 224 ] } ]\n'
      'output [ { name: "OUTPUT__0" data_type: TYPE_FP32 dims: [ 3, 224, 224 ] } ]\n')
SMALL = IO.replace("3, 224, 224", "16")
ARRAYS = IO.replace("[ 3, 224, 224 ]", "[ 8 ]")

# Name, text behind 'backend: "pytorch" max_batch_size: 8', and what becomes of it: None, "ignored", or the row with the
# reason.
CASES = {
    # What every repository has.
    "plain": (IO, None),
    "named": ('name: "named"\n' + IO, None),
    "platform": ('platform: "pytorch_libtorch"\n' + IO, None),
    "free_extents": (IO.replace("3, 224, 224", "3, -1, -1"), None),
    "nchw": (IO.replace("dims", "format: FORMAT_NCHW dims", 1), None),
    "nhwc": (IO.replace("3, 224, 224", "224, 224, 3").replace("dims", "format: FORMAT_NHWC dims", 1), None),
    "reshaped": (SMALL.replace("} ]", "reshape { shape: [ 4, 4 ] } } ]"), None),
    "comments": ("# exported on Monday\n" + IO + "# end\n", None),
    "lists": (IO.replace("[ {", "{").replace("} ]", "}"), None),
    # Batching.
    "dynamic": (IO + "dynamic_batching { }", None),
    "delay": (IO + "dynamic_batching { max_queue_delay_microseconds: 100 }", None),
    "preferred": (IO + "dynamic_batching { preferred_batch_size: [ 4, 8 ] max_queue_delay_microseconds: 100 }", None),
    "ordered": (IO + "dynamic_batching { preserve_ordering: true }", None),
    "levels": (IO + "dynamic_batching { priority_levels: 2 default_priority_level: 1 }", None),
    "policies": (IO + "dynamic_batching { priority_levels: 2 default_priority_level: 2 default_queue_policy { timeout_action: DELAY "
                      "default_timeout_microseconds: 1000000 allow_timeout_override: true max_queue_size: 100 } "
                      "priority_queue_policy { key: 1 value { max_queue_size: 10 } } }", None),
    # Instances.
    "two_on_cpu": (IO + "instance_group [ { count: 2 kind: KIND_CPU } ]", None),
    "auto": (IO + "instance_group [ { count: 1 } ]", None),
    "two_groups": (IO + "instance_group [ { name: \"a\" kind: KIND_CPU }, { name: \"b\" kind: KIND_CPU } ]", None),
    "kind_model": (IO + "instance_group [ { kind: KIND_MODEL } ]", "instance_group.kind"),
    "limited": (IO + "instance_group [ { count: 1 kind: KIND_CPU rate_limiter { resources [ { name: \"R1\" count: 4 } ] "
                     "priority: 2 } } ]", "instance_group.rate_limiter"),
    "profiles": (IO + "instance_group [ { kind: KIND_CPU profile: [ \"0\" ] } ]", "instance_group.profile"),
    "passive": (IO + "instance_group [ { kind: KIND_CPU passive: true } ]", "instance_group.passive"),
    "host_policy": (IO + "instance_group [ { kind: KIND_CPU host_policy: \"numa0\" } ]", "instance_group.host_policy"),
    # Versions.
    "latest": (IO + "version_policy { latest { num_versions: 2 } }", None),
    "all": (IO + "version_policy { all { } }", None),
    "specific": (IO + "version_policy { specific { versions: [ 1 ] } }", None),
    # Optimization.
    "graph": (IO + "optimization { graph { level: 1 } }", "optimization"),
    "cuda_graphs": (IO + "optimization { cuda { graphs: true busy_wait_events: true } }", "optimization"),
    "tensorrt": (IO + "optimization { execution_accelerators { gpu_execution_accelerator [ { name: \"tensorrt\" parameters { key: "
                      "\"precision_mode\" value: \"FP16\" } } ] } }", "optimization"),
    "pinned": (IO + "optimization { input_pinned_memory { enable: true } output_pinned_memory { enable: false } }", "optimization"),
    "priority": (IO + "optimization { priority: PRIORITY_MAX }", "optimization"),
    # Parameters of Triton's backend for PyTorch.
    "inference_mode": (IO + "parameters { key: \"INFERENCE_MODE\" value { string_value: \"true\" } }", None),
    "no_optimized": (IO + "parameters { key: \"DISABLE_OPTIMIZED_EXECUTION\" value { string_value: \"true\" } }", None),
    "threads": (IO + "parameters { key: \"INTRA_OP_THREAD_COUNT\" value { string_value: \"1\" } }", None),
    "cudnn": (IO + "parameters: { key: \"DISABLE_CUDNN\" value: { string_value: \"true\" } }", None),
    "fuser": (IO + "parameters: { key: \"ENABLE_NVFUSER\" value: { string_value: \"false\" } }", None),
    "unknown": (IO + "parameters: { key: \"MODEL_OWNER\" value: { string_value: \"vision\" } }", "ignored"),
    # Everything else.
    "warm": (IO + "model_warmup [ { name: \"zeros\" batch_size: 1 inputs { key: \"INPUT__0\" value { data_type: TYPE_FP32 "
                  "dims: [ 3, 224, 224 ] zero_data: true } } } ]", None),
    "warm_random": (IO + "model_warmup { name: \"random\" batch_size: 4 count: 2 inputs { key: \"INPUT__0\" value { data_type: "
                         "TYPE_FP32 dims: 3 dims: 224 dims: 224 random_data: true } } }", None),
    "cached": (IO + "response_cache { enable: true }", None),
    "not_decoupled": (IO + "model_transaction_policy { decoupled: false }", None),
    "decoupled": (IO + "model_transaction_policy { decoupled: true }", "model_transaction_policy.decoupled"),
    "direct": (SMALL + "sequence_batching { max_sequence_idle_microseconds: 5000000 direct { } control_input [ { name: \"START\" "
                       "control [ { kind: CONTROL_SEQUENCE_START int32_false_true: [ 0, 1 ] } ] } ] }", "sequence_batching"),
    "oldest": (SMALL + "sequence_batching { oldest { max_candidate_sequences: 4 } }", "sequence_batching"),
    "states": (SMALL + "sequence_batching { state [ { input_name: \"s\" output_name: \"t\" data_type: TYPE_FP32 dims: [ 1 ] } ] }",
               "sequence_batching"),
    "ragged": (ARRAYS.replace("dims", "allow_ragged_batch: true dims", 1), "input.allow_ragged_batch"),
    "batch_input": (ARRAYS + "batch_input [ { kind: BATCH_ELEMENT_COUNT target_name: \"n\" data_type: TYPE_FP32 "
                             "source_input: \"INPUT__0\" } ]", "batch_input"),
    "shape_tensor": (SMALL.replace("dims", "is_shape_tensor: true dims", 1), "input.is_shape_tensor"),
    "agents": (IO + "model_repository_agents { agents [ { name: \"checksum\" } ] }", "model_repository_agents"),
    "operations": (IO + "model_operations { op_library_filename: [ \"libcustom.so\" ] }", "model_operations"),
    "metric_tags": (IO + "metric_tags { key: \"team\" value: \"vision\" }", "metric_tags"),
    "compute_files": (IO + "cc_model_filenames { key: \"7.5\" value: \"model.pt\" }", "cc_model_filenames"),
    "buckets": (IO + "model_metrics { metric_control [ { metric_identifier { family: \"nv_inference_first_response_histogram_ms\" } "
                     "histogram_options { buckets: [ 1, 2, 4 ] } } ] }", "model_metrics"),
    "runtime": (IO + "runtime: \"model.py\"", "runtime"),
    "pipeline": ('platform: "ensemble"\n' + IO.replace("__0", "") + "ensemble_scheduling { step [ "
                 + step("plain", {"INPUT__0": "INPUT"}, {"OUTPUT__0": "OUTPUT"}) + " ] }", None),
}
# Other backends: what they are is in the error.
FOREIGN = {
    "onnx": ('platform: "onnxruntime_onnx"\n', "expected model.onnx"),
    "plan": ('platform: "tensorrt_plan"\n', "expected 'pytorch_libtorch'"),
    "savedmodel": ('platform: "tensorflow_savedmodel"\n', "expected 'pytorch_libtorch'"),
    "python": ('backend: "python"\n', "expected 'saccade', 'pytorch', 'onnxruntime', 'openvino' or 'ensemble'"),
    "dali": ('backend: "dali"\n', "expected 'saccade', 'pytorch', 'onnxruntime', 'openvino' or 'ensemble'"),
    "typo": ('backend: "pytorch"\nmax_batch: 8\n', "max_batch"),
}


class Identity(torch.nn.Module):
    def forward(self, x):
        return x


@pytest.fixture(scope="module")
def checked(tmp_path_factory):
    """The lines of --check-config about each model."""
    root = tmp_path_factory.mktemp("models")
    program = root.parent / "model.pt"
    torch.jit.script(Identity()).save(program)
    for name, (text, _) in CASES.items():
        write(root, name, program, text)
        if "platform" in text:
            backend = "" if "ensemble" in text else 'backend: "pytorch"\n'
            (root / name / "config.pbtxt").write_text(f"{backend}max_batch_size: 8\n{text}")
    for name, (text, _) in FOREIGN.items():
        (root / name / "1").mkdir(parents=True)
        (root / name / "config.pbtxt").write_text(text + IO)
    ended = run_to_end("--check-config", f"--model-repository={root}", ALLOW, "--cache-config=local,size=1048576",
                       seconds=START_SECONDS)
    assert ended.returncode == 1
    lines = {}
    for line in ended.stdout.splitlines():
        found = re.match(r"(OK|WARNING|ERROR) +(\w+)( version \d+)?(:| \()", line)
        if found:
            lines.setdefault(found[2], []).append(line)
    return lines


def test_there_are_enough():
    assert len(CASES) + len(FOREIGN) >= 55


@pytest.mark.parametrize("name", CASES)
def test_a_configuration(checked, name):
    row, lines = CASES[name][1], checked[name]
    if row is None:
        assert len(lines) == 1 and lines[0].startswith("OK "), lines
        return
    if row == "ignored":
        assert lines[-1].startswith("OK ") and "is ignored" in lines[0], lines
        return
    state, note = NOTES[row]
    if state == "passed over":
        assert lines[-1].startswith("OK ") and f"is ignored: {note}" in lines[0], lines
        return
    assert len(lines) == 1 and lines[0].startswith("ERROR "), lines
    if row == "instance_group.kind":
        assert "KIND_MODEL" in lines[0]
    else:
        assert f"is not supported by saccade: {note}" in lines[0], lines


@pytest.mark.parametrize("name", FOREIGN)
def test_another_backend(checked, name):
    (line,) = checked[name]
    assert line.startswith("ERROR ") and FOREIGN[name][1] in line, line
