# SPDX-License-Identifier: Apache-2.0
"""What any implementation of a graph must move and multiply."""

import math

_ITEM_SIZES = {"F64": 8, "I64": 8, "F32": 4, "I32": 4, "F16": 2, "BF16": 2, "I16": 2}


def minimum_bytes(graph):
    """Bytes of the inputs that are used, read once, and of the outputs, written once."""
    used = {output["value"] for output in graph["outputs"]}
    for node in graph["nodes"]:
        used.update(_values(node["arguments"]))
    tensors = [entry["type"] for entry in graph["inputs"] if entry["name"] in used]
    tensors += [output["type"] for output in graph["outputs"]]
    return sum(type_bytes(tensor) for tensor in tensors)


def type_bytes(tensor_type):
    """Bytes of a dense tensor of a TensorType."""
    name = tensor_type["dataType"].removeprefix("DATA_TYPE_")
    return math.prod(tensor_type["shape"]) * _ITEM_SIZES.get(name, 1)


def contraction_flops(graph):
    """Multiply-adds of matrix products, convolutions and attention, times two."""
    shapes = {entry["name"]: entry["type"]["shape"] for entry in graph["inputs"]}
    total = 0
    for node in graph["nodes"]:
        for value, tensor in zip(node["results"], node["resultTypes"]):
            shapes[value] = tensor["shape"]
        rule = _RULES.get(node["op"].split("::")[1].split(".")[0])
        if rule:
            operands = [[shapes[name] for name in _values([a])] for a in node["arguments"]]
            total += 2 * int(rule(operands, shapes[node["results"][0]], node))
    return total


def _values(arguments):
    for argument in arguments:
        if "value" in argument:
            yield argument["value"]
        elif "list" in argument:
            yield from _values(argument["list"]["elements"])


def _product(position):
    """Result elements times the last extent of the operand at `position`."""
    return lambda operands, result, node: math.prod(result) * operands[position][0][-1]


def _convolution(operands, result, node):
    return math.prod(result) * math.prod(operands[1][0][1:])


def _transposed_convolution(operands, result, node):
    return math.prod(operands[0][0]) * math.prod(operands[1][0][1:])


def _attention(operands, result, node):
    query, key, value = (operands[position][0] for position in range(3))
    products = math.prod(query[:-1]) * key[-2] * (query[-1] + value[-1])
    is_causal = node["arguments"][node["argumentNames"].index("is_causal")].get("boolValue")
    return products / 2 if is_causal else products


def _recurrent(operands, result, node):
    steps = math.prod(operands[0][0][:-1])
    return steps * sum(math.prod(shape) for shape in operands[2] if len(shape) == 2)


def _einsum(operands, result, node):
    terms = node["arguments"][0]["stringValue"].replace(" ", "").split("->")[0].split(",")
    extents = {}
    for term, shape in zip(terms, operands[1]):
        extents.update(zip(reversed(term.replace(".", "")), reversed(shape)))
    return math.prod(extents.values()) if len(terms) > 1 else 0


_RULES = {
    "mm": _product(0),
    "bmm": _product(0),
    "matmul": _product(0),
    "linear": _product(0),
    "mv": _product(0),
    "dot": _product(0),
    "addmm": _product(1),
    "baddbmm": _product(1),
    "conv1d": _convolution,
    "conv2d": _convolution,
    "conv3d": _convolution,
    "convolution": _convolution,
    "conv_transpose1d": _transposed_convolution,
    "conv_transpose2d": _transposed_convolution,
    "conv_transpose3d": _transposed_convolution,
    "scaled_dot_product_attention": _attention,
    "lstm": _recurrent,
    "gru": _recurrent,
    "rnn_tanh": _recurrent,
    "rnn_relu": _recurrent,
    "einsum": _einsum,
}
