# SPDX-License-Identifier: Apache-2.0
"""A model to mtmc.v1.Graph (as a dictionary ready for JSON).

The operators are those that `torch.export` records (`exported.py`). Training-mode
batch norm thereby becomes `aten._native_batch_norm_legit_functional`
with five results: output, saved mean, saved inverse deviation, and the new
running mean and variance.
"""

import base64
import hashlib
import json
import math
import operator

import torch
from torch.export.graph_signature import ConstantArgument, InputKind, OutputKind

from . import tensor_type
from .arguments import parameter_names
from .exported import CHECKS, export, line, needed, untraceable
from .failure import ProblemFailure
from .random_operators import SEED, draws_random
from .returned import named, plain
from .tensor_numbers import put_back
from .values import Names, operator_stem

_INPUT_KINDS = {
    InputKind.USER_INPUT: "KIND_USER_INPUT",
    InputKind.PARAMETER: "KIND_PARAMETER",
    InputKind.BUFFER: "KIND_BUFFER",
    InputKind.CONSTANT_TENSOR: "KIND_CONSTANT",
}
_MUTATION_KINDS = {
    OutputKind.BUFFER_MUTATION: "KIND_BUFFER_MUTATION",
    OutputKind.PARAMETER_MUTATION: "KIND_BUFFER_MUTATION",
    OutputKind.USER_INPUT_MUTATION: "KIND_INPUT_MUTATION",
}

# Operators that hand their first argument on unchanged.
_IDENTITIES = frozenset(
    {"aten::alias", "aten::detach", "aten::lift_fresh", "aten::lift_fresh_copy"}
)
# Operators that copy; identities of a value where the layout stays the same.
_COPIES = frozenset({"aten::clone", "aten::contiguous"})

# Constants up to this size travel with the graph, so that a program can be exported.
_MAX_CONSTANT_BYTES = 64 * 1024

# Largest integer that every JSON reader keeps exactly.
_MAX_EXACT_INTEGER = 2**53


def trace(problem, model, inputs, seed=0):
    """Returns the Graph, the lifted constants by target, and the lines of dead operations.

    REQUIRES: `inputs` are the forward arguments, on the model's device, and every run of
    the model starts from `seed`, which the first operator that draws is told. Raises
    ProblemFailure UNTRACEABLE or OUTPUT_UNSUPPORTED. Takes seconds and, because
    it runs on fake tensors, no memory of the inputs' size.
    """
    program, dead, structure, attribute_paths = export(problem, model, inputs)
    put_back(program.graph, problem.path)
    writer = _Writer(problem.path, program, parameter_names(model), attribute_paths, seed)
    graph = writer.graph(structure)
    graph["arguments"] = _arguments(problem, graph, inputs)
    text = json.dumps(graph, sort_keys=True, separators=(",", ":"))
    graph["digest"] = hashlib.sha256(text.encode()).hexdigest()
    graph["source"] = problem.source
    return graph, dict(program.constants), dead


def _arguments(problem, graph, inputs):
    """What `forward` takes, as mtmc.v1.Structure; nothing where it has no such form."""
    forms = [plain(value) for value in inputs]
    for entry in graph["inputs"]:
        if entry["kind"] == "KIND_USER_INPUT":
            forms[entry["argumentIndex"]] = {"input": entry["name"]}
    return [] if None in forms else problem.describe_arguments(forms)


def _constant_data(tensor):
    """The elements of a small constant as an entry of GraphInput; empty for a large one."""
    dense = tensor.detach().cpu().contiguous()
    if dense.numel() * dense.element_size() > _MAX_CONSTANT_BYTES:
        return {}
    elements = dense.reshape(-1).view(torch.uint8).numpy().tobytes()
    return {"data": base64.b64encode(elements).decode()}


class _Writer:
    """Turns one exported program into the dictionary; used once."""

    def __init__(self, path, program, argument_names, attribute_paths, seed):
        """`attribute_paths` are the paths of buffers that are plain attributes of the model."""
        self._path = path
        self._argument_names = argument_names
        self._program = program
        mutated = {spec.target for spec in program.graph_signature.output_specs}
        # What does not change is a constant: the model has no buffer of that name.
        self._constants = attribute_paths - mutated
        # For the first operator that draws random numbers; None after it.
        self._seed = seed
        self._names = Names()
        # fx node to value name, or to a list of them for several results.
        self._values = {}

    def graph(self, structure):
        """`structure` is what the model returns, of tensors by position."""
        nodes = {node.name: node for node in self._program.graph.nodes}
        inputs = self._inputs(nodes)
        returned = self._returned(nodes)
        outputs = self._output_specs(returned, nodes)
        live = needed(nodes[spec.arg.name] for spec in outputs)
        # Outputs are named before the operators: they are what people read.
        names = self._output_names(outputs)
        written = []
        for node in self._program.graph.nodes:
            if node.op == "call_function" and node in live and not self._forward_identity(node):
                written.append(self._node(node))
        return {
            "inputs": inputs,
            "nodes": written,
            "outputs": [
                self._output(spec, name, nodes) for spec, name in zip(outputs, names)
            ],
            "result": named(structure, self._leaves(returned, outputs, names)),
        }

    def _inputs(self, nodes):
        inputs, argument_index = [], 0
        for spec in self._program.graph_signature.input_specs:
            if isinstance(spec.arg, ConstantArgument):
                argument_index += 1
                continue
            node = nodes[spec.arg.name]
            is_user = spec.kind == InputKind.USER_INPUT
            kind = _INPUT_KINDS[spec.kind]
            if spec.kind == InputKind.BUFFER and spec.target in self._constants:
                kind = _INPUT_KINDS[InputKind.CONSTANT_TENSOR]
            name = self._names.take(self._input_wish(spec, node, argument_index))
            self._values[node] = name
            entry = {
                "name": name,
                "kind": kind,
                "type": tensor_type.describe(node.meta["val"], keep_strides=False),
            }
            if is_user:
                entry["argumentIndex"] = argument_index
                argument_index += 1
            else:
                entry["target"] = spec.target
            if kind == _INPUT_KINDS[InputKind.CONSTANT_TENSOR]:
                entry.update(_constant_data(self._program.constants[spec.target]))
            inputs.append(entry)
        return inputs

    def _input_wish(self, spec, node, argument_index):
        if spec.kind != InputKind.USER_INPUT:
            return spec.target
        # fx writes names in lower case; the user's own spelling reads better.
        spoken = self._argument_names[argument_index : argument_index + 1]
        return spoken[0] if spoken and spoken[0].lower() == node.name else node.name

    def _returned(self, nodes):
        """Specifications of the tensors that are returned, in the order of the structure."""
        specs = self._program.graph_signature.output_specs
        users = [spec for spec in specs if spec.kind == OutputKind.USER_OUTPUT]
        if not users:
            raise ProblemFailure("OUTPUT_UNSUPPORTED", "forward returns no tensor; return one")
        for spec in users:
            node = nodes[spec.arg.name]
            _require_supported(node, "OUTPUT_UNSUPPORTED", line(node, self._path))
        return users

    def _output_specs(self, returned, nodes):
        """What a program computes: each returned tensor once, then mutations.

        An input that is returned as it is needs no program, unless it is all there is.
        """
        specs = self._program.graph_signature.output_specs
        mutations = [spec for spec in specs if spec.kind in _MUTATION_KINDS]
        unique = list({spec.arg.name: spec for spec in returned}.values())
        changed = {spec.target for spec in mutations}
        computed = [s for s in unique if not self._is_handed_back(nodes[s.arg.name], changed)]
        return (computed or unique) + mutations

    def _is_handed_back(self, node, changed):
        """Whether `node` is an input or a state of the model that keeps its value; `changed` are
        names of inputs and attribute paths."""
        if node.op != "placeholder":
            return False
        specs = self._program.graph_signature.input_specs
        spec = next(spec for spec in specs if spec.arg.name == node.name)
        if spec.kind == InputKind.USER_INPUT:
            return node.name not in changed
        is_state = spec.kind in (InputKind.PARAMETER, InputKind.BUFFER)
        return is_state and spec.target not in changed | self._constants

    def _leaves(self, returned, outputs, names):
        """Which output or input each returned tensor is."""
        output_names = {
            spec.arg.name: name
            for spec, name in zip(outputs, names)
            if spec.kind == OutputKind.USER_OUTPUT
        }
        inputs = {node.name: value for node, value in self._values.items()}
        return [
            {"output": output_names[spec.arg.name]}
            if spec.arg.name in output_names
            else {"input": inputs[spec.arg.name]}
            for spec in returned
        ]

    def _output_names(self, specs):
        users = sum(spec.kind == OutputKind.USER_OUTPUT for spec in specs)
        names = []
        for index, spec in enumerate(specs):
            if index >= users:
                names.append(self._names.take(f"{spec.target}_new"))
            elif users == 1:
                names.append(self._names.take_first(["y", "out"]))
            else:
                names.append(self._names.take(f"y{index}"))
        return names

    def _output(self, spec, name, nodes):
        node = nodes[spec.arg.name]
        entry = {
            "name": name,
            "kind": _MUTATION_KINDS.get(spec.kind, "KIND_USER_OUTPUT"),
            "value": self._values[node],
            "type": tensor_type.describe(node.meta["val"]),
        }
        if spec.kind == OutputKind.USER_INPUT_MUTATION:
            entry["target"] = self._values[nodes[spec.target]]
        elif spec.kind != OutputKind.USER_OUTPUT:
            entry["target"] = spec.target
        return entry

    def _forward_identity(self, node):
        """Gives `node` the value of what it passes on unchanged; false if it computes."""
        if node.target is operator.getitem:
            source, index = node.args
            values = self._values[source]
            self._values[node] = values[index] if isinstance(values, list) else values
            return True
        if not isinstance(node.target, torch._ops.OpOverload):
            raise _untraceable(line(node, self._path), f"{node.name} is no tensor operator")
        op = node.target._schema.name
        if op in CHECKS:
            return True
        if op in _IDENTITIES or (op in _COPIES and _keeps_layout(node)):
            self._values[node] = self._values[node.args[0]]
            return True
        if op == "aten::native_dropout" and (node.args[1] == 0 or node.args[2] is False):
            # The mask stays unused in every model that was seen; if not, keep it.
            if all(user.args[1] == 0 for user in node.users):
                self._values[node] = self._values[node.args[0]]
                return True
        return False

    def _node(self, node):
        target = node.target
        results = node.meta["val"]
        is_single = isinstance(results, torch.Tensor)
        name = self._names.take(operator_stem(target))
        number = line(node, self._path)
        _require_supported(node, "UNTRACEABLE", number)
        if is_single:
            self._values[node] = name
            values, tensors = [name], [results]
        else:
            tensors = list(results)
            values = [self._names.take(f"{name}_r{index}") for index in range(len(tensors))]
            self._values[node] = values
        arguments, argument_names = self._arguments(node)
        if self._seed is not None and draws_random(target, dict(zip(argument_names, arguments))):
            arguments.append(_integer(self._seed))
            argument_names.append(SEED)
            self._seed = None
        schema = target._schema
        return {
            "name": name,
            "op": f"{schema.name}.{schema.overload_name or 'default'}",
            "arguments": arguments,
            "argumentNames": argument_names,
            "results": values,
            "resultTypes": [tensor_type.describe(tensor) for tensor in tensors],
            "line": number,
            "modulePath": _module_path(node),
        }

    def _arguments(self, node):
        arguments, names = [], []
        for index, parameter in enumerate(node.target._schema.arguments):
            if index < len(node.args):
                value = node.args[index]
            elif parameter.name in node.kwargs:
                value = node.kwargs[parameter.name]
            else:
                value = parameter.default_value
            if parameter.name == "pin_memory":
                continue
            names.append(parameter.name)
            arguments.append(self._argument(value, parameter))
        return arguments, names

    def _argument(self, value, parameter):
        kind = parameter.type.kind() if parameter is not None else ""
        if isinstance(value, torch.fx.Node):
            return {"value": self._values[value]}
        # A device is always the one that the program runs on.
        if value is None or isinstance(value, torch.device):
            return {"none": {}}
        if kind in ("DeviceObjType",):
            return {"none": {}}
        if parameter is not None and parameter.name in ("dtype", "output_dtype"):
            return _dtype_argument(value)
        if isinstance(value, bool):
            return {"boolValue": value}
        if isinstance(value, int):
            return {"floatValue": float(value)} if kind == "FloatType" else _integer(value)
        if isinstance(value, float):
            return {"floatValue": _float(value)}
        if isinstance(value, str):
            return {"stringValue": value}
        if isinstance(value, torch.dtype):
            return {"dataType": tensor_type.data_type(value)}
        if isinstance(value, (torch.memory_format, torch.layout)):
            return {"stringValue": str(value).removeprefix("torch.")}
        if isinstance(value, (list, tuple)):
            elements = [self._argument(element, None) for element in value]
            return {"list": {"elements": elements}}
        raise ProblemFailure(
            "UNTRACEABLE", f"an argument of type {type(value).__name__} has no form in a graph"
        )


def _dtype_argument(value):
    if isinstance(value, torch.dtype):
        return {"dataType": tensor_type.data_type(value)}
    return _integer(value)


def _integer(value):
    return {"intValue": value if abs(value) <= _MAX_EXACT_INTEGER else str(value)}


def _float(value):
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return value


def _keeps_layout(node):
    source, result = node.args[0].meta["val"], node.meta["val"]
    return source.stride() == result.stride()


def _require_supported(node, reason, number=0):
    values = node.meta["val"]
    where = f"line {number}: " if number else ""
    for tensor in [values] if isinstance(values, torch.Tensor) else values:
        if not isinstance(tensor, torch.Tensor) or not tensor_type.is_supported(tensor.dtype):
            kind = getattr(tensor, "dtype", type(tensor).__name__)
            raise ProblemFailure(
                reason,
                f"{where}{node.name} yields {kind}, which mtmc has no type for; use real tensors",
                number,
            )
        if not tensor_type.is_fixed(tensor):
            raise ProblemFailure(
                reason,
                f"{where}the size of {node.name} depends on the values of tensors; use a form of "
                "fixed size, such as torch.where or a mask",
                number,
            )


def _module_path(node):
    stack = node.meta.get("nn_module_stack") or {}
    return list(stack.values())[-1][0] if stack else ""
