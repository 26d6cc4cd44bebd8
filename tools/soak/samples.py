"""Samples for the demo models: each as a request in every protocol, and the part of the response that must be the same
each time."""

import base64
import json
import pathlib
import struct

from google.protobuf import json_format

from messages import message, predict_request

ROOT = pathlib.Path(__file__).resolve().parents[2]
DEMO = ROOT / "models" / "demo"
# Fields that may differ between responses with the same result.
PASSING = ("timings", "batch_size")


def encoded(pattern):
    return [{"encoded": path.read_bytes()} for path in sorted(DEMO.glob(pattern))]


def pairs():
    lefts = sorted(DEMO.glob("pairs/*-left.png"))
    return [{"stereo": {"left": {"encoded": left.read_bytes()},
                        "right": {"encoded": left.with_name(left.name.replace("left", "right")).read_bytes()}}}
            for left in lefts]


def volumes():
    return [{"volume": {"tiff": path.read_bytes()}} for path in sorted(DEMO.glob("volumes/*.tif"))]


SAMPLES = {
    "sanet_shapes": encoded("pictures/*"),
    "detector": encoded("scenes/*"),
    "segmenter": encoded("scenes/*"),
    "stereo_matcher": pairs(),
    "denoiser": volumes(),
}


class Sample:
    """One request, in every protocol."""

    def __init__(self, model, number, fields):
        self.name = f"{model} {number}"
        self.model = model
        self.typed = predict_request(model=model, **fields)
        self.json = json_format.MessageToJson(self.typed).encode()
        self.tensors = self._tensors(fields)

    def _tensors(self, fields):
        """The request in the Open Inference Protocol: encoded pictures as BYTES elements, one item."""
        if "stereo" in fields:
            elements, shape = [fields["stereo"][side]["encoded"] for side in ("left", "right")], [1, 2]
        else:
            elements, shape = [fields["encoded"] if "encoded" in fields else fields["volume"]["tiff"]], [1]
        request = message("inference.ModelInferRequest")(model_name=self.model)
        request.inputs.add(name="image", datatype="BYTES", shape=shape)
        request.raw_input_contents.append(b"".join(struct.pack("<I", len(one)) + one for one in elements))
        return request


def samples():
    return [Sample(model, number, fields) for model, all_ in SAMPLES.items() for number, fields in enumerate(all_)]


def of_typed(answer):
    for name in PASSING:
        answer.ClearField(name)
    return answer.SerializeToString(deterministic=True)


def of_json(body):
    answer = json.loads(body)
    for name in PASSING:
        answer.pop(json_name(name), None)
        answer.pop(name, None)
    return json.dumps(answer, sort_keys=True).encode()


def json_name(name):
    head, *rest = name.split("_")
    return head + "".join(part.capitalize() for part in rest)


def of_tensors(answer):
    return b"".join(output.name.encode() + bytes(str(list(output.shape)), "ascii") for output in answer.outputs) + b"".join(
        answer.raw_output_contents)


BAD_PICTURE = base64.b64encode(b"no picture at all").decode()
