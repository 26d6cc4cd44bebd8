"""Writes tests/fuzz/seeds: small valid inputs for each harness, made with third-party libraries.

Run it from the repository's root with the tests' Python: PYTHONPATH=tests/e2e python tests/fuzz/make_seeds.py
The files are committed; run it again when a harness is added or a format is extended.
"""

import gzip
import io
import json
import pathlib
import shutil
import struct
import zipfile
import zlib

import numpy
import safetensors.torch
import torch
import tritonclient.http as triton
from PIL import Image, TiffImagePlugin
from tritonclient.utils import np_to_triton_dtype

import onnx_files
import pictures
from large_tiffs import tiled_tiff
from messages import message

SEEDS = pathlib.Path(__file__).resolve().parent / "seeds"


def write(harness, name, data):
    folder = SEEDS / harness
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(data if isinstance(data, bytes) else data.encode())


def frame(kind, flags, stream, payload):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def literal(fields):
    """Fields in HPACK, neither indexed nor compressed."""
    return b"".join(b"\0" + bytes([len(name)]) + name.encode() + bytes([len(value)]) + value.encode()
                    for name, value in fields)


def front():
    """Whole connections: the size of the pieces, how the client reads, then the bytes. If the client pauses (4), each piece
    has a byte in front whose square is the pause in milliseconds."""
    preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0, b"")
    head = lambda path, kind: literal([(":method", "POST"), (":scheme", "http"), (":path", path), ("te", "trailers"),
                                       (":authority", "localhost"), ("content-type", kind)])
    message = b"\0" + struct.pack(">I", 5) + b"hello"
    zipped = gzip.compress(b"hello" * 9, mtime=0)
    calls = {
        "unary": ("/echo.Echo/Unary", message),
        "stream": ("/echo.Echo/Stream", message * 3),
        "unknown": ("/echo.Echo/None", message),
        "cut_off": ("/echo.Echo/Unary", message[:7]),
        "too_long": ("/echo.Echo/Unary", b"\0\xff\xff\xff\xff"),
        "compressed": ("/echo.Echo/Unary", b"\1" + struct.pack(">I", len(zipped)) + zipped),
    }
    for name, (path, body) in calls.items():
        for step, reading in ((255, 0), (3, 1)):
            block = head(path, "application/grpc")
            write("front", f"{name}_{step}", bytes([step, reading]) + preface + frame(1, 4, 1, block)
                  + frame(0, 1, 1, body) + frame(8, 0, 1, struct.pack(">I", 9)) + frame(6, 0, 0, b"12345678"))
    for name, kind, body in (("web", "application/grpc-web", message), ("web_text", "application/grpc-web-text", b"AAAAAAVoZWxsbw==")):
        write("front", name, b"\xff\0" + f"POST /echo.Echo/Unary HTTP/1.1\r\nHost: localhost\r\nContent-Type: {kind}\r\n"
              f"Content-Length: {len(body)}\r\n\r\n".encode() + body)
    http1 = {
        "get": b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\nGET /no HTTP/1.0\r\n\r\n",
        "post": b"POST /x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nhello",
        "chunked": b"POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
        "gzip": b"POST /x HTTP/1.1\r\nHost: a\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(zipped) + zipped,
        "expect": b"POST /x HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\nx",
    }
    for name, data in http1.items():
        write("front", name, b"\x07\0" + data)
    paused = lambda data, step, pause: bytes([step, 4]) + b"".join(
        bytes([pause]) + data[start:start + step] for start in range(0, len(data), step))
    connection = preface + frame(1, 4, 1, head("/echo.Echo/Unary", "application/grpc")) + frame(0, 1, 1, message)
    # In time; too slow for the head's 10 s; too slow for the message, of which 3 bytes are missing for 1.6 s.
    write("front", "pauses", paused(connection, 40, 5))
    write("front", "slow_head", paused(http1["post"], 8, 80))
    write("front", "slow_message", paused(connection, len(connection) - 3, 40))
    write("front", "idle", paused(http1["get"], 32, 255))


def graphs():
    """Whole models: external data in a tensor, in an attribute and in a function."""
    weight = numpy.ones((2, 3, 1, 1), "float32")
    bias = numpy.ones(2, "float32")
    external = {"location": "weights.bin", "offset": 64, "length": 24}
    write("onnx", "classifier", onnx_files.classifier(weight, bias))
    write("onnx", "external", onnx_files.classifier(weight, bias, external=external))
    constant = onnx_files.field(5, onnx_files.field(1, "value") + onnx_files.field(5, onnx_files.tensor("c", weight, external)))
    write("onnx", "attribute", onnx_files.model([onnx_files.node("Constant", [], ["y"]) + constant], [], []))
    write("onnx", "function", onnx_files.model([], [], []) + onnx_files.field(25, onnx_files.field(7, constant)))


def weights():
    torch.manual_seed(1)
    every_type = {
        f"layer.{str(type).removeprefix('torch.')}": torch.zeros(2, 3, dtype=type)
        for type in (torch.float32, torch.float16, torch.bfloat16, torch.float64, torch.int64, torch.int8, torch.bool)
    }
    write("safetensors", "one", safetensors.torch.save({"weight": torch.randn(2, 3)}))
    write("safetensors", "every_type", safetensors.torch.save(every_type, metadata={"é": "\\\n"}))
    write("safetensors", "scalar_and_empty", safetensors.torch.save({"a": torch.tensor(1.0), "b": torch.zeros(0, 4)}))

    square = torch.randn(3, 4)
    saved = {
        "one": {"weight": torch.randn(2, 3)},
        "views": {"square": square, "turned": square.t(), "part": square[1:, 2]},
        "parameter": {"square": torch.nn.Parameter(square)},
        "module": torch.nn.BatchNorm2d(2).state_dict(),
        "checkpoint": {"epoch": 3, "loss": 0.5, "done": None, "state_dict": {"module.weight": torch.ones(2)},
                       "betas": (0.9, 0.999), "groups": [{"lr": 1e-3}, True]},
        "types": every_type,
    }
    for name, value in saved.items():
        out = io.BytesIO()
        torch.save(value, out)
        write("state_dict", name, out.getvalue())
        stream = io.BytesIO()
        torch.save(value, stream, _use_new_zipfile_serialization=False)
        write("state_dict", f"stream_{name}", stream.getvalue())
        with zipfile.ZipFile(out) as archive:
            (pickle,) = [entry for entry in archive.namelist() if entry.endswith("data.pkl")]
            write("pickle", name, archive.read(pickle))


CONFIGS = {
    "classifier": """name: "model"
backend: "saccade"
max_batch_size: 8
instance_group { count: 2 kind: KIND_CPU }
parameters { key: "architecture" value { string_value: "sanet" } }
parameters { key: "classes" value { string_value: "5" } }
parameters { key: "input_size" value { string_value: "56" } }
parameters { key: "labels" value { string_value: "names.txt" } }
""",
    "batching": """# as Triton's users write it
max_batch_size: 16
dynamic_batching {
  preferred_batch_size: [ 4, 8 ]
  max_queue_delay_microseconds: 500
  preserve_ordering: true
  priority_levels: 3
  default_priority_level: 2
  default_queue_policy { timeout_action: REJECT default_timeout_microseconds: 90000 allow_timeout_override: true }
  priority_queue_policy { key: 1 value { max_queue_size: 9 timeout_action: DELAY } }
}
parameters { key: "architecture" value { string_value: "ea_mask_rcnn_r50" } }
parameters { key: "buckets" value { string_value: "800x1344,1344x800" } }
parameters { key: "weight" value { string_value: "2.5" } }
parameters { key: "max_inflight_requests" value { string_value: "4" } }
""",
    "gpu": """instance_group [ { count: 1 kind: KIND_GPU gpus: [ 0 ] } ]
parameters { key: "architecture" value { string_value: "unet3d_sao_denoise" } }
parameters { key: "precision" value { string_value: "bf16" } }
""",
    "error": 'max_batch_size: "eight"\nno_such_field { a: 1 }\n',
}
NETWORKS = {
    "deeplabv2_kao_kv": {"width": "0.125", "blocks": "1,1,1,1", "head_channels": "16", "buckets": "stride:32"},
    "ea_psmnet": {"max_disparity": "16", "long_side": "128"},
    "ea_rc3d": {"size": "32", "frames": "48", "anchors": "1,2,4", "frames_per_second": "10"},
    "expatt_resnet34": {"input_size": "64", "heads": "4"},
    "identity": {},
}


def configs():
    for name, text in CONFIGS.items():
        write("config", name, text)
    for architecture, options in NETWORKS.items():
        every = {"architecture": architecture, **options}
        lines = [f'parameters {{ key: "{key}" value {{ string_value: "{value}" }} }}' for key, value in every.items()]
        write("config", architecture, "\n".join(lines) + "\n")
    measured = "saccade measurements 2\nmachine m\nbuild 1\n"
    kind = "kind sanet\\n8\\nclasses=10\nthreads 1\ninstances 2\nbytes 700000\nuse 3\nprecision bf16 bf16 changes 0 %\npass 0 1 900000\npass 0 8 5000000\n"
    write("kinds", "none", measured + "end 0\n")
    write("kinds", "one", measured + kind + "end 1\n")
    write("labels", "plain", "cat\ndog\n")
    write("labels", "windows", "\ufeffcat\r\nd\u00f6g, b\u00e9b\u00e9\r\n\r\n")
    write("labels", "hole", "cat\n\ndog\n")


def with_exif(orientation):
    picture = Image.fromarray(pictures.pixels(2, 17, 11))
    exif = Image.Exif()
    exif[0x0112] = orientation
    out = io.BytesIO()
    picture.save(out, "JPEG", exif=exif)
    return out.getvalue()


def encoded_pictures():
    rgb = pictures.pixels(1, 20, 12)
    grey = rgb[:, :, 0]
    formats = {
        "jpeg": (rgb, "JPEG", {}),
        "jpeg_progressive": (rgb, "JPEG", {"progressive": True}),
        "jpeg_grey": (grey, "JPEG", {}),
        "jpeg_restarts": (rgb, "JPEG", {"restart_marker_blocks": 1}),
        "png": (rgb, "PNG", {}),
        "png_grey": (grey, "PNG", {}),
        "png_16": (grey.astype(numpy.uint16) * 257, "PNG", {}),
        "webp": (rgb, "WEBP", {}),
        "webp_lossless": (rgb, "WEBP", {"lossless": True}),
        "bmp": (rgb, "BMP", {}),
        "bmp_grey": (grey, "BMP", {}),
    }
    for name, (array, format, options) in formats.items():
        write("picture", name, pictures.encoded(array, format, **options))
    write("picture", "jpeg_turned", with_exif(6))
    alpha = Image.fromarray(numpy.dstack([rgb, grey]))
    palette = Image.fromarray(rgb).convert("P")
    for name, picture in {"alpha": alpha, "palette": palette}.items():
        for format in ("PNG", "WEBP", "BMP"):
            out = io.BytesIO()
            picture.save(out, format)
            write("picture", f"{format.lower()}_{name}", out.getvalue())
    # 32 bits per pixel, with masks: BITMAPV4HEADER.
    masks = struct.pack("<IIII", 0xFF0000, 0xFF00, 0xFF, 0xFF000000)
    header = struct.pack("<IiiHHIIiiII", 108, 4, -3, 1, 32, 3, 48, 2835, 2835, 0, 0) + masks + b"BGRs" + bytes(48)
    start = b"BM" + struct.pack("<IHHI", 14 + 108 + 48, 0, 0, 14 + 108)
    # Larger than what the harness decodes at once.
    write("picture", "tiff_regions", tiled_tiff(300, 200, [((255, 0, 0), 200, 100, 90, 80)]))
    write("picture", "bmp_masks", start + header + bytes(range(48)))


def volumes():
    planes = numpy.arange(3 * 8 * 10, dtype=numpy.float32).reshape(3, 8, 10)
    types = {"u8": planes.astype(numpy.uint8), "u16": planes.astype(numpy.uint16), "f32": planes}
    for name, volume in types.items():
        for compression in (None, "tiff_deflate", "tiff_lzw", "packbits"):
            pages = [Image.fromarray(plane) for plane in volume]
            out = io.BytesIO()
            pages[0].save(out, "TIFF", save_all=True, append_images=pages[1:], compression=compression)
            write("volume", f"{name}_{compression or 'raw'}", out.getvalue())
    strips = TiffImagePlugin.ImageFileDirectory_v2()
    strips[TiffImagePlugin.ROWSPERSTRIP] = 2
    out = io.BytesIO()
    Image.fromarray(types["u8"][0]).save(out, "TIFF", tiffinfo=strips, compression="tiff_lzw")
    write("volume", "strips", out.getvalue())
    write("volume", "tiled", tiled(types["u8"][0]))


def avi(frames, width, height):
    """An AVI file of JPEG pictures, 10 a second."""

    def chunk(kind, data):
        return kind + struct.pack("<I", len(data)) + data + bytes(len(data) % 2)

    longest = max(map(len, frames))
    main = struct.pack("<10I16x", 100_000, longest * 10, 0, 0, len(frames), 0, 1, longest, width, height)
    stream = struct.pack("<4s4sIHHIIIIIIII8x", b"vids", b"MJPG", 0, 0, 0, 0, 1, 10, 0, len(frames), longest, 0, 0)
    picture = struct.pack("<IiiHH4sIiiII", 40, width, height, 1, 24, b"MJPG", width * height * 3, 0, 0, 0, 0)
    streams = chunk(b"LIST", b"strl" + chunk(b"strh", stream) + chunk(b"strf", picture))
    header = chunk(b"LIST", b"hdrl" + chunk(b"avih", main) + streams)
    return chunk(b"RIFF", b"AVI " + header + chunk(b"LIST", b"movi" + b"".join(chunk(b"00dc", one) for one in frames)))


def videos():
    for name, width, height, count in (("small", 16, 16, 3), ("odd", 31, 17, 2), ("one", 64, 48, 1)):
        frames = []
        for index in range(count):
            out = io.BytesIO()
            Image.new("RGB", (width, height), (index * 80, 40, 200)).save(out, "JPEG")
            frames.append(out.getvalue())
        write("video", f"avi_{name}", avi(frames, width, height))
    # The tables of MP4 without samples.
    box = lambda kind, data: struct.pack(">I", len(data) + 8) + kind + data
    tables = box(b"stsz", bytes(12)) + box(b"stco", bytes(8)) + box(b"stsc", bytes(8)) + box(b"stts", bytes(8))
    moov = box(b"moov", box(b"trak", box(b"mdia", box(b"minf", box(b"stbl", tables)))))
    write("video", "mp4_tables", box(b"ftyp", b"isom" + bytes(4) + b"isom") + moov)


def tiled(plane):
    """A big-endian TIFF with one tile of 16 x 16."""
    tile = numpy.zeros((16, 16), numpy.uint8)
    tile[: plane.shape[0], : plane.shape[1]] = plane
    entries = [(256, 3, plane.shape[1]), (257, 3, plane.shape[0]), (258, 3, 8), (259, 3, 1), (262, 3, 1), (277, 3, 1),
               (322, 3, 16), (323, 3, 16), (324, 4, 8), (325, 4, 256), (339, 3, 1)]
    directory = struct.pack(">H", len(entries))
    for tag, type, value in entries:
        directory += struct.pack(">HHI", tag, type, 1)
        directory += struct.pack(">HH", value, 0) if type == 3 else struct.pack(">I", value)
    return b"MM\0*" + struct.pack(">I", 8 + 256) + tile.tobytes() + directory + bytes(4)


def inference_requests():
    def request(datatype, shape, raw=None, **contents):
        made = message("inference.ModelInferRequest")(model_name="tiny", id="7")
        tensor = made.inputs.add(name="image", datatype=datatype, shape=shape)
        for name, values in contents.items():
            getattr(tensor.contents, name).extend(values)
        if raw is not None:
            made.raw_input_contents.append(raw)
        return made

    def elements(*parts):
        return b"".join(struct.pack("<I", len(part)) + part for part in parts)

    full = request("FP32", [1, 3, 2, 2], bytes(48))
    full.model_version = "1"
    full.parameters["priority"].uint64_param = 3
    full.parameters["timeout"].int64_param = 5000
    full.parameters["text"].string_param = "a"
    full.parameters["flag"].bool_param = True
    output = full.outputs.add(name="logits")
    output.parameters["classification"].int64_param = 3
    sequence = request("FP32", [1, 3, 1, 1], bytes(12))
    sequence.parameters["sequence_id"].uint64_param = 1
    shared = request("BYTES", [1])
    shared.inputs[0].parameters["shared_memory_region"].string_param = "region"
    examples = {
        "raw": full,
        "bytes": request("BYTES", [2, 1], elements(b"one", b"two")),
        "pairs": request("BYTES", [1, 2], elements(b"left", b"right")),
        "typed": request("FP32", [1, 3, 1, 1], fp32_contents=[0.5, -1, 2]),
        "typed_bytes": request("BYTES", [2], bytes_contents=[b"one", b""]),
        "integers": request("INT32", [3], int_contents=[1, -2, 3]),
        "sequence": sequence,
        "shared_memory": shared,
    }
    for number, (name, example) in enumerate(examples.items()):
        # The first byte is the size of the slices.
        write("inference", name, bytes([[1, 7, 64, 255][number % 4]]) + example.SerializeToString(deterministic=True))


def http_requests():
    """HTTP requests; the first byte is the size of the pieces in which each is parsed."""

    def head(path, body, *more):
        lines = [f"POST {path} HTTP/1.1", "Host: h", *more]
        if not any(line.startswith("Transfer-Encoding") for line in more):
            lines.append(f"Content-Length: {len(body)}")
        return "\r\n".join([*lines, "", ""]).encode() + body

    def infer(array, binary, outputs=(), **more):
        made = triton.InferInput("x", list(array.shape), np_to_triton_dtype(array.dtype))
        made.set_data_from_numpy(array, binary_data=binary)
        wanted = list(outputs) or None
        body, size = triton.InferenceServerClient.generate_request_body([made], outputs=wanted, **more)
        lines = [f"Inference-Header-Content-Length: {size}"] if size else []
        return bytes(body), lines

    floats = numpy.array([[1, -2.5], [3e2, 0]], numpy.float32)
    texts = numpy.array([b"one", b"\xc3\xa9"], dtype=numpy.object_)
    shared = triton.InferRequestedOutput("y")
    shared.set_shared_memory("region", 64, 8)
    wanted = [triton.InferRequestedOutput("y", binary_data=False, class_count=2), shared]
    path = "/v2/models/m/versions/1/infer"
    json_body, _ = infer(floats, False)
    binary_body, binary_lines = infer(floats, True, wanted, request_id="7", priority=1, timeout=5)
    text_body, text_lines = infer(texts, True)
    chunks = b"".join(b"%x;a=b\r\n%s\r\n" % (len(part), part) for part in (json_body[:7], json_body[7:]))
    chunked = "Transfer-Encoding: chunked"
    zipped = gzip.compress(json_body, mtime=0)
    load = json.dumps({"parameters": {"config": "{}"}}).encode()
    requests = {
        "json": head(path, json_body),
        "texts_in_json": head(path, infer(texts, False)[0]),
        "binary": head(path, binary_body, *binary_lines),
        "binary_texts": head(path, text_body, *text_lines),
        "raw": head("http://h/v2/models/a%20b/infer", floats.tobytes(), "Inference-Header-Content-Length: 0"),
        "gzip": head(path, zipped, "Content-Encoding: gzip", "Accept-Encoding: deflate;q=0.5, gzip"),
        "deflate": head(path, zlib.compress(json_body), "Content-Encoding: deflate"),
        "chunks": head(path, chunks + b"0\r\nTrailer: x\r\n\r\n", chunked),
        "chunks_of_gzip": head(path, b"%x\r\n%s\r\n0\r\n\r\n" % (len(zipped), zipped), chunked,
                               "Content-Encoding: gzip"),
        "settings": head("/v2/logging", b'{"log_info":true,"log_verbose_level":1,"log_format":"ISO8601"}'),
        "load": head("/v2/repository/models/m/load", load),
        "get": b"GET /v2/models/stats?a=b HTTP/1.0\r\n\r\n",
    }
    for number, (name, request) in enumerate(requests.items()):
        write("rest", name, bytes([[1, 7, 64, 255][number % 4]]) + request)


def vision_requests():
    def made(name, **fields):
        return message(f"saccade.v1.{name}")(**fields)

    raw = made("RawPicture", width=2, height=1, order=1, pixels=bytes(6))
    picture = made("Picture", encoded=b"\xff\xd8")
    shape = made("VolumeShape", depth=1, height=2, width=2, type=2)
    frames = made("Frames", pictures=[picture, made("Picture", raw=raw)], frames_per_second=10)
    inputs = {
        "encoded": dict(encoded=b"\x89PNG", classification=made("ClassificationOptions", top_k=3)),
        "raw": dict(raw=raw, version=1, request_id="an id", priority=-3),
        "stereo": dict(stereo=made("StereoPair", left=picture, right=picture), stereo_options=made("StereoOptions")),
        "video": dict(clip=made("Clip", video=b"RIFF"), actions=made("ActionOptions", top_k=2, classes=[1, 2])),
        "frames": dict(clip=made("Clip", frames=frames)),
        "tiff": dict(volume=made("Volume", tiff=b"II*\0"), restoration=made("RestorationOptions")),
        "voxels": dict(volume=made("Volume", raw=made("RawVolume", shape=shape, voxels=bytes(8)))),
        "detection": dict(encoded=b"BM", detection=made("DetectionOptions", score_threshold=0.5, classes=[1], masks=2)),
        "segmentation": dict(encoded=b"BM", segmentation=made("SegmentationOptions")),
    }
    for name, fields in inputs.items():
        write("vision", name, made("PredictRequest", model="tiny", **fields).SerializeToString(deterministic=True))


if __name__ == "__main__":
    shutil.rmtree(SEEDS, ignore_errors=True)
    for make in (weights, graphs, configs, encoded_pictures, videos, volumes, inference_requests, http_requests,
                 vision_requests, front):
        make()
    files = [path for path in SEEDS.rglob("*") if path.is_file()]
    print(f"{len(files)} seeds, {sum(path.stat().st_size for path in files)} bytes, the largest "
          f"{max(path.stat().st_size for path in files)}")
