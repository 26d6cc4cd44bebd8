"""Damaged model folders: each function damages a valid model and returns words of the expected error."""

import json
import os
import pathlib
import random
import shutil
import struct

import safetensors.torch
import torch


def read(path):
    data = path.read_bytes()
    (size,) = struct.unpack_from("<Q", data)
    return json.loads(data[8 : 8 + size]), data[8 + size :]


def write(path, header, body):
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + body)


def tensors(header):
    """The tensors' names, sorted by their offsets in the file."""
    named = [name for name in header if name != "__metadata__"]
    return sorted(named, key=lambda name: header[name]["data_offsets"])


def cut_short(path):
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])
    return ["weights.safetensors"]


def cut_in_the_header(path):
    path.write_bytes(path.read_bytes()[:100])
    return ["header"]


def a_header_of_exabytes(path):
    path.write_bytes(struct.pack("<Q", 2**60) + path.read_bytes()[8:])
    return ["header"]


def empty(path):
    path.write_bytes(b"")
    return ["weights.safetensors"]


def overlapping(path):
    header, body = read(path)
    first, second = [name for name in tensors(header) if header[name]["dtype"] == "F32"][:2]
    start = header[first]["data_offsets"][0]
    begin, end = header[second]["data_offsets"]
    header[second]["data_offsets"] = [start, start + end - begin]
    write(path, header, body)
    return [second]


def out_of_range(path):
    header, body = read(path)
    last = tensors(header)[-1]
    begin, end = header[last]["data_offsets"]
    header[last]["data_offsets"] = [begin + 2**40, end + 2**40]
    write(path, header, body)
    return [last]


def negative_length(path):
    header, body = read(path)
    last = tensors(header)[-1]
    begin, end = header[last]["data_offsets"]
    header[last]["data_offsets"] = [end, begin - 4]
    write(path, header, body)
    return [last]


def missing_tensor(path):
    state = safetensors.torch.load_file(path)
    del state["classifier.weight"]
    safetensors.torch.save_file(state, path)
    return ["classifier.weight"]


def wrong_shape(path):
    state = safetensors.torch.load_file(path)
    state["classifier.weight"] = state["classifier.weight"][:, :-1].contiguous()
    safetensors.torch.save_file(state, path)
    return ["classifier.weight", "320", "319"]


def wrong_dtype(path):
    state = safetensors.torch.load_file(path)
    state["classifier.weight"] = state["classifier.weight"].to(torch.int32)
    safetensors.torch.save_file(state, path)
    return ["classifier.weight", "I32"]


def surplus_tensor(path):
    state = safetensors.torch.load_file(path)
    safetensors.torch.save_file({**state, "nobody.knows.me": torch.zeros(1)}, path)
    return ["nobody.knows.me"]


def no_weights(path):
    path.unlink()
    return ["weights.safetensors"]


def link_out_of_the_repository(path):
    outside = path.parents[3] / "outside.safetensors"
    path.rename(outside)
    path.symlink_to(outside)
    return ["symbolic link"]


def unknown_architecture(path):
    config = path.parents[1] / "config.pbtxt"
    config.write_text(config.read_text().replace('"sanet"', '"resnet_9000"'))
    return ["resnet_9000", "sanet"]


def unknown_option(path):
    config = path.parents[1] / "config.pbtxt"
    config.write_text(config.read_text() + 'parameters { key: "colour" value { string_value: "blue" } }\n')
    return ["colour"]


def unknown_field(path):
    config = path.parents[1] / "config.pbtxt"
    config.write_text(config.read_text() + "no_such_field: 1\n")
    return ["config.pbtxt", "no_such_field"]


def instead(path, make):
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()
    make(path)


def weights_that_are_a_folder(path):
    instead(path, pathlib.Path.mkdir)
    return ["weights.safetensors", "regular file"]


def weights_that_are_a_pipe(path):
    instead(path, os.mkfifo)
    return ["weights.safetensors", "regular file"]


def weights_that_lead_nowhere(path):
    instead(path, lambda made: made.symlink_to("nowhere"))
    return ["weights.safetensors", "No such file"]


def a_config_that_is_a_pipe(path):
    instead(path.parents[1] / "config.pbtxt", os.mkfifo)
    return ["config.pbtxt", "regular file"]


def a_config_of_bytes(path):
    (path.parents[1] / "config.pbtxt").write_bytes(random.Random(1).randbytes(5000))
    return ["config.pbtxt", "UTF-8"]


def a_huge_config(path):
    with open(path.parents[1] / "config.pbtxt", "ab") as config:
        config.write(b"#" * (2 << 20))
    return ["config.pbtxt", "1048576"]


def a_number_of_thousands_of_digits(path):
    config = path.parents[1] / "config.pbtxt"
    config.write_text(config.read_text() + f"dynamic_batching {{ priority_levels: {'9' * 5000} }}\n")
    return ["config.pbtxt", "out of range"]


def a_version_of_zero(path):
    path.parent.rename(path.parents[1] / "0")
    return ["/0: is not a version"]


def a_version_with_a_zero_in_front(path):
    path.parent.rename(path.parents[1] / "01")
    return ["/01: is not a version"]


def a_version_below_zero(path):
    path.parent.rename(path.parents[1] / "-1")
    return ["has no version"]


def a_version_of_many_digits(path):
    path.parent.rename(path.parents[1] / ("9" * 200))
    return ["is not a version"]


def a_version_that_is_a_file(path):
    shutil.rmtree(path.parent)
    path.parent.write_bytes(b"1")
    return ["has no version"]


def labels_of_bytes(path):
    (path.parents[1] / "labels.txt").write_bytes(b"\xff\xfe\n")
    return ["labels.txt", "UTF-8"]


def more_labels_than_classes(path):
    with open(path.parents[1] / "labels.txt", "a") as labels:
        labels.write("another\n")
    return ["labels"]


def a_model_that_is_a_pipe(path):
    instead(path.parents[1], os.mkfifo)
    return ["Not a directory"]


def weights_with_names_that_forge_lines(path):
    for number in range(300):
        (path.parent / f"{number}\nOK      forged (sanet).pt").write_bytes(b"")
    path.unlink()
    return ["several weights files", "292 more"]


DAMAGES = [
    cut_short,
    cut_in_the_header,
    a_header_of_exabytes,
    empty,
    overlapping,
    out_of_range,
    negative_length,
    missing_tensor,
    wrong_shape,
    wrong_dtype,
    surplus_tensor,
    no_weights,
    link_out_of_the_repository,
    unknown_architecture,
    unknown_option,
    unknown_field,
    weights_that_are_a_folder,
    weights_that_are_a_pipe,
    weights_that_lead_nowhere,
    a_config_that_is_a_pipe,
    a_config_of_bytes,
    a_huge_config,
    a_number_of_thousands_of_digits,
    a_version_of_zero,
    a_version_with_a_zero_in_front,
    a_version_below_zero,
    a_version_of_many_digits,
    a_version_that_is_a_file,
    labels_of_bytes,
    more_labels_than_classes,
    a_model_that_is_a_pipe,
    weights_with_names_that_forge_lines,
]
