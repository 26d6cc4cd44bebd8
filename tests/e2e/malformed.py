"""Invalid requests for two protocols, made at random from valid ones.

A mistake changes a request in place. With any mistake the daemon must reject the request, whatever else is wrong with
it.
"""

import random
import struct

import pictures
from messages import infer_request, message, predict_request

# Names that a client may send; all of them are valid strings to protobuf.
NAMES = ["", "\0", "\1\x1b[31m", "image\0", "IMAGE", "../../etc/passwd", "%s%n", "\U0001f600", "é" * 60_000, "x" * 10**5]
DATATYPES = ["", "fp32", "FP33", "BYTES\x00", "\x07", "T" * 50_000]
HUGE = [2**31, 2**40, 2**62, 2**63 - 1]
VERSIONS = ["-1", "0", "1.0", "one", "1\x00", "9" * 40, "x" * 100_000]

PICTURE = pictures.encoded(pictures.pixels(0, 64, 64))
FORMATS = {format: pictures.encoded(pictures.pixels(0, 64, 64), format) for format in ("PNG", "JPEG", "WEBP", "BMP")}
TENSOR = bytes(4 * 3 * 56 * 56)


def elements(*parts):
    return b"".join(struct.pack("<I", len(part)) + part for part in parts)


def typed(datatype, shape, **contents):
    request = infer_request("tiny", shape, None, datatype)
    for name, values in contents.items():
        getattr(request.inputs[0].contents, name).extend(values)
    return request


GOOD_INFERENCES = {
    "raw": lambda: infer_request("tiny", [1, 3, 56, 56], TENSOR),
    "typed": lambda: typed("FP32", [1, 3, 56, 56], fp32_contents=[0.5] * (3 * 56 * 56)),
    "bytes": lambda: infer_request("tiny", [2], elements(PICTURE, PICTURE), "BYTES"),
    "typed bytes": lambda: typed("BYTES", [1, 1], bytes_contents=[PICTURE]),
}


def a_wrong_side(request, choose):
    shape = request.inputs[0].shape or [1]
    side = choose.randrange(len(shape))
    # Three more than the original: a mistake in the contents cannot compensate for it.
    shape[side] = choose.choice([-1, -(2**63), 0, shape[side] + 3, *HUGE])
    request.inputs[0].shape[:] = list(shape)


def a_shape_that_overflows(request, choose):
    # Products of 2^64 and beyond, which wrap around to 0 or to a small number in 64 bits.
    sides = choose.choice([[2**32, 2**32], [2**62, 2, 2], [2**63 - 1, 2**63 - 1], [3, 2**62, 2**62, 4], [2**21] * 4])
    request.inputs[0].shape[:] = sides


def another_rank(request, choose):
    request.inputs[0].shape[:] = [1] * choose.choice([0, 3, 7, 500])


def a_wrong_datatype(request, choose):
    request.inputs[0].datatype = choose.choice(DATATYPES)


def a_wrong_input_name(request, choose):
    request.inputs[0].name = choose.choice(NAMES)


def an_input_twice(request, choose):
    for _ in range(choose.choice([1, 2, 100])):
        request.inputs.append(request.inputs[0])
        if request.raw_input_contents and choose.random() < 0.5:
            request.raw_input_contents.append(request.raw_input_contents[0])


def no_input(request, choose):
    del request.inputs[:]


def contents_too_many(request, choose):
    if not request.raw_input_contents:
        return contents_of_both_kinds(request, choose)
    request.raw_input_contents.extend([b""] * choose.choice([1, 2, 1000]))


def no_contents(request, choose):
    del request.raw_input_contents[:]
    request.inputs[0].ClearField("contents")


def contents_of_both_kinds(request, choose):
    request.inputs[0].contents.fp32_contents.append(choose.random())
    if not request.raw_input_contents:
        request.raw_input_contents.append(TENSOR)


def contents_of_another_kind(request, choose):
    no_contents(request, choose)
    kind = choose.choice(["int_contents", "uint64_contents", "bool_contents", "fp64_contents"])
    getattr(request.inputs[0].contents, kind).extend([1] * choose.choice([1, 3 * 56 * 56]))


def contents_of_another_length(request, choose):
    if not request.raw_input_contents:
        contents = request.inputs[0].contents
        for values in (contents.fp32_contents, contents.bytes_contents):
            values.extend(values[:1])
        return
    raw = request.raw_input_contents[0]
    # No number is in both lists, so applying the mistake twice does not undo it.
    cut, added = choose.choice([1, 2, 3, 5, 100, 9000]), choose.choice([4, 6, 99, 9001])
    request.raw_input_contents[0] = raw[:-cut] if choose.random() < 0.5 else raw + bytes(added)


def a_length_that_lies(request, choose):
    if request.inputs[0].datatype != "BYTES" or not request.raw_input_contents:
        return contents_of_another_length(request, choose)
    raw = bytearray(request.raw_input_contents[0])
    (length,) = struct.unpack_from("<I", raw)
    struct.pack_into("<I", raw, 0, choose.choice([0, length - 1, length + 1, 2**31, 2**32 - 1, 2**32 - 4]))
    request.raw_input_contents[0] = bytes(raw)


def a_wrong_model(request, choose):
    request.model_name = choose.choice(NAMES)


def a_wrong_version(request, choose):
    request.model_version = choose.choice(VERSIONS)


def a_wrong_output(request, choose):
    request.outputs.add(name=choose.choice(NAMES))


def a_parameter_of_another_type(request, choose):
    request.parameters[choose.choice(["priority", "timeout"])].string_param = choose.choice(NAMES)


def a_sequence(request, choose):
    request.parameters["sequence_id"].uint64_param = choose.choice([1, 2**64 - 1])


def a_shared_memory_that_nobody_registered(request, choose):
    tensor = request.inputs[0] if choose.random() < 0.5 else request.outputs.add(name="logits")
    tensor.parameters["shared_memory_region"].string_param = choose.choice(NAMES)
    for name in ("shared_memory_byte_size", "shared_memory_offset"):
        tensor.parameters[name].int64_param = choose.choice([-1, 0, 1, *HUGE])


INFERENCE_MISTAKES = [
    a_shared_memory_that_nobody_registered,
    a_wrong_side,
    a_shape_that_overflows,
    another_rank,
    a_wrong_datatype,
    a_wrong_input_name,
    an_input_twice,
    no_input,
    contents_too_many,
    no_contents,
    contents_of_both_kinds,
    contents_of_another_kind,
    contents_of_another_length,
    a_length_that_lies,
    a_wrong_model,
    a_wrong_version,
    a_wrong_output,
    a_parameter_of_another_type,
    a_sequence,
]


def raw_picture(width, height, size, order=1):
    return message("saccade.v1.RawPicture")(width=width, height=height, order=order, pixels=bytes(size))


def a_raw_picture_of_another_size(request, choose):
    sides = choose.choice([(0, 1), (-1, -1), (2**31 - 1, 2**31 - 1), (65536, 65536), (3, 5), (-(2**31), 1)])
    request.raw.CopyFrom(raw_picture(*sides, choose.choice([0, 1, 12])))


def a_raw_picture_without_order(request, choose):
    request.raw.CopyFrom(raw_picture(2, 2, 12, order=choose.choice([0, 3, -1])))


def an_input_for_another_task(request, choose):
    voxels = message("saccade.v1.VolumeShape")(depth=1, height=1, width=1, type=1)
    field, value = choose.choice(
        [
            ("stereo", message("saccade.v1.StereoPair")()),
            ("clip", message("saccade.v1.Clip")(video=PICTURE)),
            ("clip", message("saccade.v1.Clip")(frames=message("saccade.v1.Frames")(frames_per_second=float("nan")))),
            ("volume", message("saccade.v1.Volume")(tiff=PICTURE)),
            ("volume", message("saccade.v1.Volume")(raw=message("saccade.v1.RawVolume")(shape=voxels, voxels=b"1"))),
        ]
    )
    getattr(request, field).CopyFrom(value)


def options_for_another_task(request, choose):
    others = ["detection", "segmentation", "stereo_options", "actions", "restoration"]
    getattr(request, choose.choice(others)).SetInParent()


def an_option_out_of_bounds(request, choose):
    request.classification.top_k = choose.choice([-1, -(2**31), 2**31 - 1])


def a_field_out_of_bounds(request, choose):
    values = {"version": [-1, 2**63 - 1], "priority": [101, -(2**31)], "request_id": ["x" * 129, "é" * 50_000]}
    name = choose.choice(list(values))
    setattr(request, name, choose.choice(values[name]))


def a_picture_cut_short(request, choose):
    whole = choose.choice(list(FORMATS.values()))
    request.encoded = whole[: choose.randrange(len(whole) - 20)]


def an_unknown_model(request, choose):
    request.model = choose.choice(NAMES)


VISION_MISTAKES = [
    a_raw_picture_of_another_size,
    a_raw_picture_without_order,
    an_input_for_another_task,
    options_for_another_task,
    an_option_out_of_bounds,
    a_field_out_of_bounds,
    a_picture_cut_short,
    an_unknown_model,
]


def malformed_inferences(count, seed):
    """Yields (description, request): every mistake in every valid request, then two mistakes at once until there are
    `count`."""
    choose = random.Random(seed)
    made = [(kind, [mistake]) for mistake in INFERENCE_MISTAKES for kind in GOOD_INFERENCES]
    while len(made) < count:
        made.append((choose.choice(list(GOOD_INFERENCES)), choose.sample(INFERENCE_MISTAKES, 2)))
    for number, (kind, mistakes) in enumerate(made):
        request = GOOD_INFERENCES[kind]()
        for mistake in mistakes:
            # The first mistake may have removed the input that the second one changes.
            if mistake == mistakes[0] or request.inputs:
                mistake(request, choose)
        yield f"{number}: {kind}, {' and '.join(mistake.__name__ for mistake in mistakes)}", request


def malformed_predicts(count, seed):
    choose = random.Random(seed)
    for number in range(count):
        request = predict_request(model="tiny", encoded=PICTURE)
        made = VISION_MISTAKES[number % len(VISION_MISTAKES)]
        made(request, choose)
        yield f"{number}: {made.__name__}", request


def damaged(data, choose):
    """Returns the data with a few bytes changed, removed or inserted."""
    data = bytearray(data)
    for _ in range(choose.choice([1, 1, 2, 8])):
        at = choose.randrange(len(data))
        change = choose.random()
        if change < 0.7:
            data[at] = choose.randrange(256)
        elif change < 0.85:
            del data[at : at + choose.randrange(1, 9)]
            data = data or bytearray(b"\0")
        else:
            data[at:at] = bytes(choose.randrange(256) for _ in range(choose.randrange(1, 9)))
    return bytes(data)
