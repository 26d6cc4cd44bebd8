"""docs/reference/limits.md: bounds that no flag changes, with their values as the sources have them."""

import pathlib
import re

from harness import ROOT
from tools.markdown import table
from tools.reference.document import document

FOLDERS = ("server", "models")
BYTES, SECONDS, COUNT = "bytes", "seconds", ""

# Heading: (file, constant or member, unit, what it bounds, what happens above it). Files are named without their
# folders.
LIMITS = {
    "Requests over HTTP": [
        ("http_server.h", "max_head_bytes", BYTES, "Request line and headers together", "431"),
        ("request_parser.cc", "kMaxHeaders", COUNT, "Headers of a request", "431"),
        ("http_server.h", "handshake_timeout", SECONDS, "TLS handshake", "the connection is closed"),
        ("http_server.h", "read_timeout", SECONDS, "Arrival of a request, from its first byte to its last; large ones "
         "have longer, see the rate below", "408"),
        ("http_server.h", "write_timeout", SECONDS, "Sending of an answer; large ones have longer, see the rate below",
         "the connection is closed"),
        ("http_server.h", "min_bytes_per_second", BYTES, "Rate per second, for which large requests and answers have "
         "time", "the connection is closed"),
        ("http_server.h", "idle_timeout", SECONDS, "Silence between two requests on a connection",
         "the connection is closed"),
        ("http_server.h", "max_requests_per_connection", COUNT, "Requests on one connection",
         "the connection is closed after the answer, so that clients spread again behind a balancer"),
        ("rest_json.cc", "kMaxDepth", COUNT, "Nesting of JSON", "400"),
        ("rest_json.cc", "kMaxTensors", COUNT, "Tensors of a request in JSON", "400"),
        ("rest_json.cc", "kMaxParameters", COUNT, "Parameters of a request or tensor in JSON", "400"),
        ("rest_json.cc", "kMaxExtents", COUNT, "Dimensions of a tensor in JSON", "400"),
    ],
    "Requests over gRPC": [
        ("grpc_server.cc", "kMaxStreamsPerConnection", COUNT, "Calls at once on one connection",
         "the client waits with more"),
        ("grpc_server.cc", "kHandshakeMs", "ms", "TLS and HTTP/2 handshakes", "the connection is closed"),
        ("inference_stream.h", "kMaxRequests", COUNT,
         "Requests of one ModelStreamInfer that were read and not answered",
         "the daemon reads no further until answers were sent"),
        ("inference_request.h", "kMaxRaws", COUNT, "`raw_input_contents` of a request", "INVALID_ARGUMENT"),
    ],
    "What a request may ask": [
        ("vision_messages.h", "kMaxRequestId", BYTES, "Request id, over `saccade.v1`", "INVALID_ARGUMENT"),
        ("vision_messages.cc", "kMaxPriority", COUNT, "Priority, over `saccade.v1`", "INVALID_ARGUMENT"),
        ("vision_messages.cc", "kMaxFrameRate", COUNT, "Frames per second of a clip", "INVALID_ARGUMENT"),
        ("vision_options.cc", "kMaxTopK", COUNT, "`top_k`", "INVALID_ARGUMENT"),
        ("vision_options.cc", "kMaxClasses", COUNT, "Classes that a request names", "INVALID_ARGUMENT"),
        ("vision_options.cc", "kMaxOutputSide", COUNT, "Width or height of a requested output size",
         "INVALID_ARGUMENT"),
        ("vision_options.cc", "kMaxOutputPixels", COUNT, "Pixels of a requested output size", "INVALID_ARGUMENT"),
        ("vision_explain.cc", "kMaxMaps", COUNT, "Attention maps of an answer", "INVALID_ARGUMENT"),
        ("vision_explain.cc", "kMaxPositions", COUNT, "Positions whose attention is asked for", "INVALID_ARGUMENT"),
        ("volume.h", "kMaxVolumeSide", COUNT, "Depth, height or width of a volume", "INVALID_ARGUMENT"),
        ("tiff_file.cc", "kMaxAllocation", BYTES, "One allocation of the TIFF library, such as a strip or a tile",
         "INVALID_ARGUMENT"),
    ],
    "Model repositories": [
        ("repository.cc", "kMaxModelNameBytes", BYTES, "A model's name", "the model is not loaded"),
        ("repository.cc", "kMaxConfigBytes", BYTES, "`config.pbtxt`", "the model is not loaded"),
        ("config_file.cc", "kMaxBatchSize", COUNT, "`max_batch_size`", "the model is not loaded"),
        ("instance_config.cc", "kMaxInstances", COUNT, "Instances of a model", "the model is not loaded"),
        ("ensemble_config.cc", "kMaxSteps", COUNT, "Steps of an ensemble", "the model is not loaded"),
        ("batching_config.cc", "kMaxDelayMicroseconds", COUNT, "`max_queue_delay_microseconds`",
         "the model is not loaded"),
        ("batching_config.cc", "kMaxTimeoutMicroseconds", COUNT, "`default_timeout_microseconds`",
         "the model is not loaded"),
        ("tensor_config.cc", "kMaxTensors", COUNT, "Inputs or outputs in a configuration", "the model is not loaded"),
        ("tensor_config.cc", "kMaxDimensions", COUNT, "`dims` of a tensor", "the model is not loaded"),
        ("labels.cc", "kMaxLabels", COUNT, "Lines of `labels.txt`", "the model is not loaded"),
        ("labels.cc", "kMaxLabelBytes", BYTES, "A label", "the model is not loaded"),
        ("version_policy.cc", "kMaxVersions", COUNT, "Versions that a policy names", "the model is not loaded"),
        ("warmup_config.cc", "kMaxWarmups", COUNT, "`model_warmup` entries", "the model is not loaded"),
    ],
    "Weights": [
        ("weights.cc", "kMaxFileBytes", BYTES, "A weights file", "the model is not loaded"),
        ("safetensors.h", "kMaxHeaderBytes", BYTES, "The header of a safetensors file", "the model is not loaded"),
        ("pickle.cc", "kMaxPickleBytes", BYTES, "The pickle in a `weights.pt`", "the model is not loaded"),
        ("pickle.cc", "kMaxValues", COUNT, "Values in that pickle", "the model is not loaded"),
    ],
    "Tokens and certificates": [
        ("token_file.h", "kMaxTokens", COUNT, "Tokens in `--token-file`", "the file is rejected"),
        ("token_file.h", "kMinTokenBytes", BYTES, "A token, at least", "the file is rejected"),
        ("token_file.h", "kMaxTokenBytes", BYTES, "A token, at most", "the file is rejected"),
        ("secret_files.h", "kMaxSecretBytes", BYTES, "A file with a certificate, a key or tokens",
         "the file is rejected"),
    ],
}

INTRODUCTION = """
Bounds that no flag changes. Those that flags set, with their defaults, are in
[flags.md](flags.md#how-much-one-request-may-send). The values are read from the sources.

For example, a request over HTTP with more than 100 headers gets 431.
"""


def sources():
    """The text of every source file, by name without folders."""
    found = {}
    for folder in FOLDERS:
        for path in (pathlib.Path(ROOT) / folder).rglob("*"):
            if path.suffix in (".h", ".cc"):
                found.setdefault(path.name, []).append(path.read_text())
    return found


def value_of(name, texts):
    """Evaluates the definition of a constant, or the default of a member: integers, shifts, and absl::Seconds()."""
    found = [match[1] for text in texts for match in re.finditer(rf"\b{name}\s*=\s*([^;]+);", text)]
    assert len(found) == 1, f"{name} is defined {len(found)} times"
    plain = re.sub(r"\b(?:u?int\d+_t|size_t)\{([^}]*)\}|absl::Seconds\(([^)]*)\)", r"\1\2", found[0]).replace("'", "")
    assert re.fullmatch(r"[\d\s<+*()-]+", plain), f"{name} = {found[0]} is not understood"
    return eval(plain)  # Only digits and operators.


def shown(value, unit):
    if unit == BYTES and value % 1024 == 0:
        for name, size in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
            if value >= size and value % size == 0:
                return f"{value // size:,} {name}"
    return f"{value:,} {unit}".rstrip()


def page():
    texts, sections = sources(), []
    for heading, limits in LIMITS.items():
        rows = [[what, shown(value_of(name, texts.get(file, ())), unit), above]
                for file, name, unit, what, above in limits]
        sections.append((heading, table(["what", "limit", "beyond it"], rows)))
    return document("Limits", INTRODUCTION, sections)
