"""docs/reference/limits.md: bounds that no flag changes, with their values as the sources have them."""

import pathlib
import re

from harness import ROOT
from tools.markdown import table
from tools.reference.document import document

FOLDERS = ("server", "models")
BYTES, SECONDS, COUNT = "bytes", "seconds", ""
REFUSED = "RESOURCE_EXHAUSTED, 429"

# Heading: (file, constant or member, unit, what it bounds, what happens above it). Files are named without their
# folders.
LIMITS = {
    "Connections": [
        ("port.h", "handshake_timeout", SECONDS, "TLS handshake", "the connection is closed"),
        ("http_limits.h", "max_head_fields", COUNT, "Headers of a request", "431"),
        ("http_limits.h", "max_continuations", COUNT, "CONTINUATION frames of one HTTP/2 head",
         "the connection is closed"),
        ("http_limits.h", "max_control_frames_per_second", COUNT,
         "SETTINGS, PING, PRIORITY, unknown and empty DATA frames a second, and heads of calls that have ended; one PING for "
         "each part of an answer is not counted", "the connection is closed"),
        ("http_limits.h", "max_window_updates_per_second", COUNT, "WINDOW_UPDATE frames a second",
         "the connection is closed"),
        ("http2_frame_budget.cc", "kMaxRefusedPerSecond", COUNT,
         "Calls a second that are refused because of `--max-streams-per-connection`", "the connection is closed"),
        ("http2_frame_budget.cc", "kMaxLateBytesPerSecond", BYTES,
         "DATA a second of calls that have ended, beyond what the client was allowed to send before it heard of the end",
         "the connection is closed"),
        ("http2_frame_budget.cc", "kMaxLateBytes", BYTES, "DATA that a client may have on its way to calls that have ended",
         "it counts to the line before"),
        ("http_limits.h", "transfer_grace", SECONDS,
         "Time that a body over HTTP and every answer have beside what `--min-transfer-rate` gives them",
         "408, or the connection is closed"),
    ],
    "Health on the gRPC and HTTP ports": [
        ("health_reserve.h", "kMaxHealthChecks", COUNT,
         "Open checks while `--max-inflight-bytes` is used up, over gRPC and over REST each", REFUSED),
        ("health_reserve.h", "kMaxHealthChecksPerClient", COUNT, "Those of one client", REFUSED),
        ("health_reserve.h", "kHealthCallBytes", BYTES, "Memory of these checks, and of open watches, on average", REFUSED),
        ("health_reserve.h", "kMaxCheckWait", SECONDS,
         "Time to read the answer of such a check, and silence of its client over gRPC", "the call ends"),
    ],
    "Requests over HTTP": [
        ("rest/json.cc", "kMaxDepth", COUNT, "Nesting of JSON", "400"),
        ("rest/query.cc", "kMaxQueryParameters", COUNT, "Parameters of a query", "400"),
        ("rest/query.cc", "kMaxSingleParameters", COUNT, "Those of them that are not lists", "400"),
        ("rest/json.cc", "kMaxTensors", COUNT, "Tensors of a request in JSON", "400"),
        ("rest/json.cc", "kMaxParameters", COUNT, "Parameters of a request or tensor in JSON", "400"),
        ("rest/json.cc", "kMaxAllParameters", COUNT, "Parameters of a request and all its tensors in JSON", "400"),
        ("json_text.h", "kMaxJsonValues", COUNT,
         "Values and names in the JSON of a prediction, a configuration, an order to load, or settings, and in members that the "
         "protocol does not have",
         "400"),
        ("http_service.h", "max_compression_ratio", COUNT,
         "Size of a body that came compressed, as a multiple of what was sent, beyond the next line", "413"),
        ("http_service.h", "max_decompressed_bytes", BYTES, "Size that every compressed body may grow to", "413"),
        ("vision/json.h", "kMaxCompressedJsonValues", COUNT,
         "Values and names of a picture's JSON that came compressed, beyond one for each byte that was sent", "400"),
        ("rest/json.h", "kMaxCompressedRestValues", COUNT,
         "Values and names of an inference request's JSON that came compressed, beyond the next line; those that are read twice, "
         "because `data` precede `datatype` or `shape`, count twice", "400"),
        ("rest/json.h", "kMaxCompressedRestValuesPerByte", COUNT, "The same for each byte that was sent", "400"),
        ("json_text.h", "kMaxJsonNumber", COUNT,
         "Characters of a number in an inference request's JSON; depending on where it stands, up to twice as many pass", "400"),
        ("rest/members.cc", "kMaxSettingsBytes", BYTES, "JSON of settings, of shared memory and of the model repository",
         "400"),
        ("rest/capture.cc", "kMaxBody", BYTES, "JSON of `/v1/capture`", "400"),
        ("rest/capture.cc", "kMaxModels", COUNT, "Models that `/v1/capture` names with rates of their own", "400"),
        ("repository_orders.cc", "kMaxConfigBytes", BYTES, "A model's configuration in a request, also over gRPC", "400"),
    ],
    "Requests over gRPC": [
        ("grpc_handler.h", "message_grace", SECONDS,
         "Time that a message has beside what `--min-transfer-rate` gives it", "the call ends"),
        ("grpc_handler.h", "silence_timeout", SECONDS,
         "Time until the only message of a call begins, and from its end until the client ends its side", "the call ends"),
        ("grpc_handler.h", "max_compression_ratio", COUNT,
         "Size of a compressed message, as a multiple of what was sent, beyond the next line", "RESOURCE_EXHAUSTED"),
        ("grpc_handler.h", "max_growth_bytes", BYTES, "Size that every compressed message may grow to",
         "RESOURCE_EXHAUSTED"),
        ("message_size.h", "kMaxNestedMessages", COUNT, "Messages within a message: inputs, parameters, pictures",
         "INVALID_ARGUMENT"),
        ("message_size.h", "kMaxStrings", COUNT, "Strings and unknown fields of a message", "INVALID_ARGUMENT"),
        ("message_size.h", "kMaxFields", COUNT, "Fields of a message, elements that are not packed included",
         "INVALID_ARGUMENT"),
        ("message_size.h", "kMaxCompressedParts", COUNT,
         "Messages, strings or fields of a message that came compressed, beyond one for each byte that was sent", "INVALID_ARGUMENT"),
        ("message_methods.h", "kMaxQuestionBytes", BYTES, "A request that brings no input and is no order to load a model",
         "INVALID_ARGUMENT"),
        ("inference/repository.cc", "kMaxLoadBytes", BYTES, "A request to load a model, over gRPC", "INVALID_ARGUMENT"),
        ("small_messages.h", "kMaxSmallMessage", BYTES, "A request to health or reflection",
         "RESOURCE_EXHAUSTED from health, INVALID_ARGUMENT from reflection"),
        ("grpc/health.cc", "kMaxServiceName", BYTES, "Name of a service in a request to health", "INVALID_ARGUMENT"),
        ("reflection.cc", "kMaxReflectionRequests", COUNT, "Requests of one stream of reflection", "RESOURCE_EXHAUSTED"),
        ("message_bytes.h", "kMaxUnchargedBytes", BYTES, "Memory of a parsed request that brings no input",
         "INVALID_ARGUMENT"),
        ("inference/stream.h", "kMaxRequests", COUNT,
         "Requests of one ModelStreamInfer that were read and not answered",
         "the daemon reads no further until answers were sent"),
        ("inference/request.h", "kMaxRaws", COUNT, "`raw_input_contents` of a request", "INVALID_ARGUMENT"),
        ("call_start.cc", "kMaxJoined", COUNT, "Values, joined by commas, of metadata whose name ends with `-bin`", "INVALID_ARGUMENT"),
        ("call_start.cc", "kMaxJoinedName", BYTES, "Name of such metadata, if it has several values", "INVALID_ARGUMENT"),
    ],
    "What a request may ask": [
        ("message_size.h", "kMaxModelName", BYTES, "Name of a model in a request for a prediction; over REST also for its metadata, configuration and statistics", "INVALID_ARGUMENT"),
        ("inference/parameters.h", "kMaxInferId", BYTES, "Request id, over the Open Inference Protocol", "INVALID_ARGUMENT"),
        ("vision/messages.h", "kMaxRequestId", BYTES, "Request id, over `saccade.v1`", "INVALID_ARGUMENT"),
        ("core/tensor.h", "kMaxTensorExtents", COUNT, "Extents of a tensor's shape", "INVALID_ARGUMENT"),
        ("classification.h", "kMaxClassified", COUNT, "Values of an output that the parameter `classification` asks for, all rows together",
         "INVALID_ARGUMENT"),
        ("call_head.h", "kMaxPriority", COUNT, "Priority, of models without `priority_levels`",
         "INVALID_ARGUMENT over `saccade.v1`; over the Open Inference Protocol it counts as the limit"),
        ("vision/messages.cc", "kMaxFrameRate", COUNT, "Frames per second of a clip", "INVALID_ARGUMENT"),
        ("vision/options.cc", "kMaxTopK", COUNT, "`top_k`", "INVALID_ARGUMENT"),
        ("vision/options.cc", "kMaxClasses", COUNT, "Classes that a request names", "INVALID_ARGUMENT"),
        ("vision/options.cc", "kMaxOutputSide", COUNT, "Width or height of a requested output size",
         "INVALID_ARGUMENT"),
        ("vision/options.cc", "kMaxOutputPixels", COUNT, "Pixels of a requested output size", "INVALID_ARGUMENT"),
        ("vision/results.cc", "kMaxMaskPixels", COUNT, "Pixels of a detection's mask", "INVALID_ARGUMENT"),
        ("vision/results.cc", "kMaxPixelsOfMasks", COUNT, "Pixels of an answer's masks", "INVALID_ARGUMENT"),
        ("picture_inputs.cc", "kMaxPictures", COUNT, "Pictures of a tensor of pictures", "INVALID_ARGUMENT"),
        ("named_tensors.cc", "kMaxTexts", COUNT, "Texts of a tensor", "INVALID_ARGUMENT"),
        ("tile_items.h", "kMaxTiles", COUNT, "Tiles of a picture", "INVALID_ARGUMENT"),
        ("tile_items.cc", "kMaxStoredShare", COUNT,
         "Pixels of a TIFF's own tiles that are decoded for each pixel of the tiles that it is cut into, beyond "
         "`--max-picture-pixels`", "INVALID_ARGUMENT"),
        ("client_crops.h", "kMaxCropsAtOnce", COUNT,
         "Crops in flight of all requests of one client; each request may have one", "the others wait"),
        ("vision/explain.cc", "kMaxMaps", COUNT, "Attention maps of an answer", "INVALID_ARGUMENT"),
        ("vision/explain.cc", "kMaxPositions", COUNT, "Positions whose attention is asked for", "INVALID_ARGUMENT"),
        ("volume.h", "kMaxVolumeSide", COUNT, "Depth, height or width of a volume", "INVALID_ARGUMENT"),
        ("tiff_file.cc", "kMaxAllocation", BYTES, "One allocation of the TIFF library, such as a strip or a tile",
         "INVALID_ARGUMENT"),
    ],
    "Pictures and videos": [
        ("jpeg_header.cc", "kMaxScans", COUNT, "Scans of a JPEG", "INVALID_ARGUMENT"),
        ("jpeg_header.cc", "kMaxScannedPixels", COUNT, "Scans of a JPEG, times its pixels; one scan always may be",
         "INVALID_ARGUMENT"),
        ("png_header.cc", "kMaxExifBytes", BYTES, "EXIF data of a PNG", "they are passed over"),
        ("webp_lossless.cc", "kMaxBlocks", COUNT, "Blocks with codes of their own in a lossless WebP",
         "INVALID_ARGUMENT"),
        ("tiff_directory.cc", "kMaxTags", COUNT, "Tags of a page of a TIFF", "INVALID_ARGUMENT"),
        ("tiff_directory.cc", "kMaxTagKinds", COUNT, "Different tags of a TIFF", "INVALID_ARGUMENT"),
        ("tiff_directory.cc", "kMaxTagBytes", BYTES,
         "Data of a page's tags, without the positions of strips and tiles", "INVALID_ARGUMENT"),
        ("tiff_file.cc", "kMaxSamples", COUNT, "Samples of a TIFF's pixel", "INVALID_ARGUMENT"),
        ("tiff_file.cc", "kMaxTilePixels", COUNT,
         "Pixels of a TIFF's tile, if they are over four times the page's, or if it is read by regions", "INVALID_ARGUMENT"),
        ("tiff_file.cc", "kMaxTilesOfFile", COUNT, "Tiles of a TIFF that is read by regions", "INVALID_ARGUMENT"),
        ("jpeg_header.cc", "kCostOfArithmetic", COUNT, "Scans that one of an arithmetic JPEG counts as", "INVALID_ARGUMENT"),
        ("picture_header.h", "kMaxRegionalSide", COUNT, "Longer side of a TIFF that is read by regions", "INVALID_ARGUMENT"),
        ("tiff_file.cc", "kMaxSharing", COUNT, "Bytes of a TIFF's strips or tiles, in sizes of the file",
         "INVALID_ARGUMENT"),
        ("tiff_file.cc", "kMaxExcessOfTile", BYTES, "Bytes of a tile beyond twice its pixels', in a TIFF that is read by regions",
         "INVALID_ARGUMENT"),
        ("tiff_file.cc", "kMaxExcessOfStrip", COUNT, "Rows of a JPEG below the TIFF's strip that it is", "INVALID_ARGUMENT"),
        ("mp4_samples.cc", "kMaxCopies", COUNT,
         "Entries of an MP4's edit lists times its samples, as a multiple of the samples that a file of its size may have",
         "INVALID_ARGUMENT"),
        ("mp4_samples.cc", "kMaxSamples", COUNT, "Frames and pieces of sound of an MP4 or MOV", "INVALID_ARGUMENT"),
        ("mp4_samples.cc", "kMaxTexts", COUNT, "Texts of an MP4 or MOV", "INVALID_ARGUMENT"),
        ("mp4_samples.cc", "kMaxNameBytes", BYTES, "Names that an MP4 or MOV gives its texts", "INVALID_ARGUMENT"),
        ("avi_chunks.cc", "kMaxInfoBytes", BYTES, "Texts of an AVI", "INVALID_ARGUMENT"),
        ("matroska_frames.cc", "kMaxDescriptionBytes", BYTES, "Cues, tags or chapters of a Matroska or WebM file", "INVALID_ARGUMENT"),
        ("matroska_frames.cc", "kMaxFrames", COUNT, "Frames and pieces of sound of a Matroska or WebM file", "INVALID_ARGUMENT"),
        ("matroska_frames.cc", "kMaxStrippedBytes", BYTES, "Bytes of each frame that a Matroska file stores once",
         "INVALID_ARGUMENT"),
        ("ffmpeg_video.cc", "kMaxHiddenPixels", COUNT, "Pixels of frames that follow each other and are not shown",
         "INVALID_ARGUMENT"),
        ("ffmpeg_video.cc", "kMaxStreams", COUNT, "Streams of a video file", "INVALID_ARGUMENT"),
        ("ffmpeg_video.cc", "kMaxScansOfFrame", COUNT, "Scans of a frame of Motion JPEG", "the video ends there"),
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
        ("repository.cc", "kMaxDescriptionBytes", BYTES,
         "`saccade.json`, and each of `config.json` and `preprocessor_config.json`", "the model is not loaded"),
        ("repository.cc", "kMaxLabelsBytes", BYTES, "`labels.txt`", "the model is not loaded"),
        ("labels.cc", "kMaxLabels", COUNT, "Lines of `labels.txt`", "the model is not loaded"),
        ("labels.cc", "kMaxLabelBytes", BYTES, "A label", "the model is not loaded"),
        ("version_policy.cc", "kMaxVersions", COUNT, "Versions that a policy names", "the model is not loaded"),
        ("version_policy.cc", "kMaxLabels", COUNT, "Labels in `version_labels`", "the model is not loaded"),
        ("version_policy.cc", "kMaxLabelBytes", BYTES, "A label of a version", "the model is not loaded"),
        ("batching_config.cc", "kMaxLevels", COUNT, "`priority_levels`", "the model is not loaded"),
        ("promote_config.h", "kMaxPromoteConditions", COUNT, "Conditions of a rule `promote`", "the model is not loaded"),
        ("warmup_config.cc", "kMaxWarmups", COUNT, "`model_warmup` entries", "the model is not loaded"),
        ("repository.cc", "kMaxSamples", COUNT, "Files in a model's folder `samples`", "the rest is not used"),
        ("checksums.cc", "kMaxFiles", COUNT, "Files of a model with a `SHA256SUMS`", "the model is not loaded"),
    ],
    "Loads of models": [
        ("load_plan.cc", "kMaxLoads", COUNT, "Models that are loaded at the same time, however many cores there are",
         "the others wait"),
        ("load_queue.h", "max_waiting_per_model", COUNT, "Requests that wait until one model is loaded",
         REFUSED),
        ("load_queue.h", "max_waiting", COUNT, "Requests that wait for all such models", REFUSED),
        ("load_queue.h", "max_wait", SECONDS, "Time for which a request waits, whatever its deadline is",
         "DEADLINE_EXCEEDED, 504"),
    ],
    "Weights": [
        ("file_contents.h", "kMaxWeightsFileBytes", BYTES, "A weights file", "the model is not loaded"),
        ("graph_check.cc", "kMaxOnnxBytes", BYTES, "`model.onnx`", "the model is not loaded"),
        ("graph_check.cc", "kMaxXmlBytes", BYTES, "`model.xml`", "the model is not loaded"),
        ("graph_check.cc", "kMaxDataBytes", BYTES, "`model.bin`, or `model.onnx` with its external data",
         "the model is not loaded"),
        ("safetensors.h", "kMaxHeaderBytes", BYTES, "The header of a safetensors file", "the model is not loaded"),
        ("pickle.cc", "kMaxPickleBytes", BYTES, "The pickle in a `weights.pt`", "the model is not loaded"),
        ("pickle.cc", "kMaxValues", COUNT, "Values in that pickle", "the model is not loaded"),
    ],
    "Labels for `saccade quantize`": [
        ("folder_files.h", "kMaxFolderFiles", COUNT, "Files of a folder of pictures or labels", "the command ends"),
        ("label_lines.h", "kMaxLabelListBytes", BYTES, "A list of labels", "the command ends"),
        ("label_lines.h", "kMaxLabelLines", COUNT, "Labels of a list", "the command ends"),
        ("mask_file.h", "kMaxTruthFileBytes", BYTES, "A mask, or a file of disparities", "the command ends"),
    ],
    "Tokens and certificates": [
        ("token_file.h", "kMaxTokens", COUNT, "Tokens in `--token-file`", "the file is rejected"),
        ("token_file.h", "kMaxModelsOfToken", COUNT, "Models that a token is limited to", "the file is rejected"),
        ("token_file.h", "kMinTokenBytes", BYTES, "A token, at least", "the file is rejected"),
        ("token_file.h", "kMaxTokenBytes", BYTES, "A token, at most", "the file is rejected"),
        ("secret_files.h", "kMaxSecretBytes", BYTES, "A file with a certificate, a key or tokens",
         "the file is rejected"),
    ],
}

INTRODUCTION = """
Bounds that no flag changes. Those that flags set, with their defaults, are in
[flags.md](flags.md#how-much-one-request-may-send). The values are read from the sources.

For example, a request with more than 128 headers gets 431.
"""


def sources():
    """The text of every source file, by its name and by that with the folder before it."""
    found = {}
    for folder in FOLDERS:
        for path in (pathlib.Path(ROOT) / folder).rglob("*"):
            if path.suffix in (".h", ".cc"):
                for name in (path.name, f"{path.parent.name}/{path.name}"):
                    found.setdefault(name, []).append(path.read_text())
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
    return f"{value:,} {'second' if (value, unit) == (1, SECONDS) else unit}".rstrip()


def page():
    texts, sections = sources(), []
    for heading, limits in LIMITS.items():
        rows = [[what, shown(value_of(name, texts.get(file, ())), unit), above]
                for file, name, unit, what, above in limits]
        sections.append((heading, table(["what", "limit", "beyond it"], rows)))
    return document("Limits", INTRODUCTION, sections)
