# SPDX-License-Identifier: Apache-2.0
"""Checks emitted programs on a host without a GPU.

A program is read as its directives say: OpenCL kernels run on PoCL through
pyopencl, library calls run in PyTorch, CUDA sources are compiled by NVRTC for
sm_90. Expected results come from PyTorch's own operators, applied node by node
to the traced graph in double precision and in single precision.
"""

import ctypes
import json
import re
import time

import numpy as np
import torch

TORCH_TYPES = {
    "f64": torch.float64, "f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16,
    "i64": torch.int64, "i32": torch.int32, "i16": torch.int16, "i8": torch.int8,
    "u8": torch.uint8, "bool": torch.bool,
}
# Texts of a graph that PyTorch's operators take as objects.
TORCH_WORDS = (
    "contiguous_format", "preserve_format", "channels_last", "channels_last_3d", "strided")


class Tensor:
    """A tensor directive."""

    def __init__(self, role, name, text):
        self.role, self.name = role, name
        kind, shape = re.fullmatch(r"(\w+)\[([\d,]*)\]", text).groups()
        self.dtype = TORCH_TYPES[kind]
        self.shape = [int(extent) for extent in shape.split(",") if extent]


class Program:
    """The directives of a program text, with tune parameters at their first values."""

    def __init__(self, text):
        self.text, self.tensors, self.steps, self.tune = text, {}, [], {}
        for line in text.splitlines():
            if not line.startswith("//@ "):
                continue
            word, _, rest = line[4:].partition(" ")
            if word in ("input", "weight", "buffer", "output"):
                name, kind = rest.split()
                self.tensors[name] = Tensor(word, name, kind)
            elif word == "tune":
                for part in rest.split(";"):
                    name, values = part.split("=")
                    self.tune[name.strip()] = [int(value) for value in values.split()]
            elif word in ("launch", "call"):
                self.steps.append((word, rest))

    def bindings(self):
        return {name: values[0] for name, values in self.tune.items()}

    def outputs(self):
        return [tensor for tensor in self.tensors.values() if tensor.role == "output"]


def evaluate(expression, bindings):
    names = dict(bindings, min=min, max=max, ceil_div=lambda a, b: -(-a // b))
    return int(eval(expression.replace("/", "//"), {"__builtins__": {}}, names))


def parse_launch(rest):
    kernel = rest.split()[0]
    fields = dict(re.findall(r"(grid|block|shared|args)=(\(.*?\)|\S+)(?= grid=| block=| shared=| args=|$)", rest))
    split = lambda text: [part.strip() for part in split_commas(text.strip()[1:-1])]
    return kernel, split(fields["grid"]), split(fields["block"]), split(fields["args"])


def split_commas(text):
    parts, depth, current = [], 0, ""
    for character in text:
        depth += (character in "([") - (character in ")]")
        if character == "," and depth == 0:
            parts.append(current)
            current = ""
        else:
            current += character
    return parts + ([current] if current.strip() else [])


# --- graphs -----------------------------------------------------------------------------------


def graph_type(proto):
    kind = proto["dataType"].removeprefix("DATA_TYPE_").lower()
    return TORCH_TYPES[kind], [int(extent) for extent in proto.get("shape", [])]


def graph_argument(proto, values):
    if "value" in proto:
        return values[proto["value"]]
    if "intValue" in proto:
        return int(proto["intValue"])
    if "floatValue" in proto:
        return float(str(proto["floatValue"]).replace("Infinity", "inf"))
    if "boolValue" in proto:
        return proto["boolValue"]
    if "stringValue" in proto:
        text = proto["stringValue"]
        return getattr(torch, text) if text in TORCH_WORDS else text
    if "dataType" in proto:
        return TORCH_TYPES[proto["dataType"].removeprefix("DATA_TYPE_").lower()]
    if "list" in proto:
        return [graph_argument(element, values) for element in proto["list"].get("elements", [])]
    return None


def random_inputs(graph, seed=0):
    generator = torch.Generator().manual_seed(seed)
    values = {}
    for proto in graph["inputs"]:
        dtype, shape = graph_type(proto["type"])
        if dtype.is_floating_point:
            value = torch.randn(shape, generator=generator).to(dtype)
            if "var" in proto["name"]:
                value = value.abs() + 0.5
            if proto["kind"] == "KIND_PARAMETER" and len(shape) > 1:
                value = value / max(1, np.prod(shape[1:])) ** 0.5
        elif dtype == torch.bool:
            value = torch.rand(shape, generator=generator) > 0.5
        else:
            value = torch.randint(0, 2, shape, generator=generator).to(dtype)
        values[proto["name"]] = value
    return values


def run_graph(graph, inputs, dtype=None):
    """Every graph output by name; floating-point inputs are converted to `dtype` first."""
    values = {}
    for name, value in inputs.items():
        is_floating = value.dtype.is_floating_point
        values[name] = value.to(dtype) if dtype is not None and is_floating else value
    for node in graph["nodes"]:
        name, _, overload = node["op"].removeprefix("aten::").partition(".")
        op = getattr(getattr(torch.ops.aten, name), overload or "default")
        arguments = [graph_argument(argument, values) for argument in node.get("arguments", [])]
        if dtype == torch.float64:
            arguments = [torch.float64 if a == torch.float32 else a for a in arguments]
        names = node.get("argumentNames", [])
        keyword_only = {a.name for a in op._schema.arguments if a.kwarg_only}
        positional = [a for a, n in zip(arguments, names) if n not in keyword_only]
        keywords = {n: a for a, n in zip(arguments, names) if n in keyword_only}
        results = op(*positional, **keywords)
        results = results if isinstance(results, (tuple, list)) else [results]
        values.update(zip(node["results"], results))
    return {output["name"]: values[output["value"]] for output in graph["outputs"]}


# --- OpenCL -----------------------------------------------------------------------------------


class OpenClRunner:
    def __init__(self):
        import pyopencl
        self.cl = pyopencl
        self.context = pyopencl.create_some_context(interactive=False)
        self.queue = pyopencl.CommandQueue(self.context)

    def prepare(self, program, inputs):
        """A function without arguments that runs the program once, and its tensors."""
        flags = self.cl.mem_flags
        bindings = program.bindings()
        options = [f"-D{name}={value}" for name, value in bindings.items()]
        built = self.cl.Program(self.context, program.text).build(options)
        arrays, buffers = {}, {}
        for name, tensor in program.tensors.items():
            if tensor.role in ("input", "weight"):
                value = inputs[name].contiguous().clone()
            elif tensor.dtype.is_floating_point:
                value = torch.full(tensor.shape, float("nan"), dtype=tensor.dtype)
            else:
                value = torch.ones(tensor.shape, dtype=tensor.dtype)
            arrays[name] = value
        def bytes_of(value):
            return value.contiguous().view(-1).view(torch.uint8).numpy()

        for name, value in arrays.items():
            # No buffer is empty.
            host = bytes_of(value) if value.numel() else np.zeros(16, np.uint8)
            buffers[name] = self.cl.Buffer(
                self.context, flags.READ_WRITE | flags.USE_HOST_PTR, hostbuf=host)
        steps = [self._step(word, rest, built, bindings, arrays, buffers) for word, rest in program.steps]

        def run():
            for step in steps:
                step()
            self.queue.finish()

        return run, arrays

    def _step(self, word, rest, built, bindings, arrays, buffers):
        if word == "launch":
            kernel, grid, block, names = parse_launch(rest)
            grid = [evaluate(text, bindings) for text in grid]
            block = [evaluate(text, bindings) for text in block]
            entry = self.cl.Kernel(built, kernel)
            for position, name in enumerate(names):
                entry.set_arg(position, buffers[name])
            sizes = [g * b for g, b in zip(grid, block + [1] * (len(grid) - len(block)))]
            while len(block) < len(sizes):
                block.append(1)
            # Kernel arguments do not keep buffers alive: the closure does.
            return lambda held=buffers: self.cl.enqueue_nd_range_kernel(self.queue, entry, sizes, block)
        call = library_call(rest, arrays)

        def run():
            self.queue.finish()
            call()

        return run


def library_call(rest, arrays):
    """A function that makes the call of a directive on the tensors `arrays`, wherever they are."""
    call, _, results = rest.partition(" -> ")
    is_channels_last = results.endswith(" layout=channels_last")
    results = re.sub(r" (precision|layout)=\w+", "", results)
    op, arguments = re.fullmatch(r"aten::([\w.]+)\((.*)\)", call).groups()
    name, _, overload = op.partition(".")
    function = getattr(getattr(torch.ops.aten, name), overload or "default")
    targets = [target.strip() for target in results.split(",")]

    def run():
        scope = dict(inf=float("inf"), nan=float("nan"), as_strided=torch.as_strided)
        scope.update(TORCH_TYPES)
        scope.update(arrays)
        values = list(eval(f"[{arguments}]", {"__builtins__": {}}, scope))
        keywords = [a.name for a in function._schema.arguments if a.kwarg_only]
        count = len(function._schema.arguments) - len(keywords)
        values = [TORCH_TYPES.get(v, v) if isinstance(v, str) else v for v in values]
        produced = function(*values[:count], **dict(zip(keywords, values[count:])))
        produced = produced if isinstance(produced, (tuple, list)) else [produced]
        for target, value in zip(targets, produced):
            if target != "_":
                arrays[target].copy_(value.movedim(1, -1) if is_channels_last else value)

    return run


# --- CUDA -------------------------------------------------------------------------------------


class Nvrtc:
    """NVRTC from the wheel. LD_LIBRARY_PATH must name its folder for libnvrtc-builtins."""

    def __init__(self):
        import nvidia.cu13
        self.root = list(nvidia.cu13.__path__)[0]
        ctypes.CDLL(f"{self.root}/lib/libnvrtc-builtins.so.13.0", mode=ctypes.RTLD_GLOBAL)
        self.library = ctypes.CDLL(f"{self.root}/lib/libnvrtc.so.13")

    def compile(self, program, arch="sm_90a"):
        """Resource usage by kernel as ptxas reports it; raises with the log."""
        handle = ctypes.c_void_p()
        library = self.library
        library.nvrtcCreateProgram(ctypes.byref(handle), program.text.encode(), b"program.cu", 0, None, None)
        options = [f"--gpu-architecture={arch}", "--ptxas-options=-v", f"-I{self.root}/include",
                   "--std=c++17"]
        options += [f"-D{name}={value}" for name, value in program.bindings().items()]
        encoded = (ctypes.c_char_p * len(options))(*[option.encode() for option in options])
        status = library.nvrtcCompileProgram(handle, len(options), encoded)
        size = ctypes.c_size_t()
        library.nvrtcGetProgramLogSize(handle, ctypes.byref(size))
        log = ctypes.create_string_buffer(size.value)
        library.nvrtcGetProgramLog(handle, log)
        library.nvrtcDestroyProgram(ctypes.byref(handle))
        text = log.value.decode()
        if status != 0:
            raise RuntimeError(text)
        return text


def spills(log):
    return sum(int(n) for n in re.findall(r"(\d+) bytes spill", log))


def check_values(graph, produced, inputs):
    """Largest error against fp64, next to fp32's own, per output."""
    exact = run_graph(graph, inputs, torch.float64)
    single = run_graph(graph, inputs)
    report = {}
    for name, expected in exact.items():
        if not expected.dtype.is_floating_point:
            report[name] = (float((produced[name] != expected).double().mean()), 0.0)
            continue
        scale = float(expected.abs().mean()) + 1e-30
        error = float((produced[name].double() - expected).abs().max()) / scale
        own = float((single[name].double() - expected).abs().max()) / scale
        report[name] = (error, own)
    return report


def load_graph(path):
    with open(path) as file:
        return json.load(file)


def best_of(run, times=5):
    run()
    best = float("inf")
    for _ in range(times):
        begin = time.perf_counter()
        run()
        best = min(best, time.perf_counter() - begin)
    return best
