"""Writes small ONNX files without the package onnx: protobuf's wire format, with the numbers of onnx.proto."""

import numpy

FLOAT, UINT8, INT8, INT32, INT64, DOUBLE = 1, 2, 3, 6, 7, 11
TYPES = {"float32": FLOAT, "uint8": UINT8, "int8": INT8, "int32": INT32, "int64": INT64, "float64": DOUBLE}


def varint(value):
    value &= (1 << 64) - 1
    written = bytearray()
    while value > 0x7F:
        written.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes(written + bytes([value]))


def field(number, value):
    if isinstance(value, str):
        value = value.encode()
    if isinstance(value, bytes):
        return varint(number << 3 | 2) + varint(len(value)) + value
    if isinstance(value, float):
        return varint(number << 3 | 5) + numpy.float32(value).tobytes()
    return varint(number << 3) + varint(value)


def tensor(name, array, external=None):
    """`external` holds the keys location, offset and length, in place of the values."""
    array = numpy.asarray(array)
    start = b"".join(field(1, dim) for dim in array.shape) + field(2, TYPES[array.dtype.name]) + field(8, name)
    if external is None:
        return start + field(9, array.tobytes())
    entries = (field(13, field(1, key) + field(2, str(value))) for key, value in external.items())
    return start + b"".join(entries) + field(14, 1)


def attribute(name, value):
    if isinstance(value, float):
        return field(1, name) + field(2, value) + field(20, 1)
    if isinstance(value, int):
        return field(1, name) + field(3, value) + field(20, 2)
    return field(1, name) + b"".join(field(8, one) for one in value) + field(20, 7)


def node(operator, inputs, outputs, domain="", **attributes):
    return (b"".join(field(1, name) for name in inputs) + b"".join(field(2, name) for name in outputs) + field(4, operator)
            + b"".join(field(5, attribute(*one)) for one in attributes.items()) + (field(7, domain) if domain else b""))


def value(name, type_name, dims):
    """Dims are numbers, or names of open sizes."""
    shape = b"".join(field(1, field(1, dim) if isinstance(dim, int) else field(2, dim)) for dim in dims)
    return field(1, name) + field(2, field(1, field(1, TYPES[type_name]) + field(2, shape)))


def model(nodes, inputs, outputs, initializers=(), opset=17, domains=()):
    graph = (b"".join(field(1, one) for one in nodes) + field(2, "g") + b"".join(field(5, one) for one in initializers)
             + b"".join(field(11, one) for one in inputs) + b"".join(field(12, one) for one in outputs))
    opsets = field(8, field(2, opset)) + b"".join(field(8, field(1, domain) + field(2, 1)) for domain in domains)
    return field(1, 8) + field(7, graph) + opsets


def classifier(weight, bias, batch="n", size=("h", "w"), pixels="x", logits="y", external=None):
    """A convolution of stride 4, averaged over the picture: float32 [batch, 3, h, w] to [batch, classes]."""
    classes = len(bias)
    nodes = [node("Conv", [pixels, "weight", "bias"], ["features"], strides=[4, 4], kernel_shape=list(weight.shape[2:])),
             node("GlobalAveragePool", ["features"], ["mean"]), node("Flatten", ["mean"], [logits], axis=1)]
    return model(nodes, [value(pixels, "float32", [batch, 3, *size])], [value(logits, "float32", [batch, classes])],
                 [tensor("weight", weight, external), tensor("bias", bias)])
