# SPDX-License-Identifier: Apache-2.0
"""Library calls are made as their schemas ask, in every form that a program may write them
in, and with the settings they were measured with."""

import pathlib
import re
import types

import exported
import pytest
import torch

CALLABLE = re.findall(
    r'\{"aten::(\w+)", Operator::Use::kCallable',
    (pathlib.Path(__file__).parents[3] / "kernel/graph/operators.inc").read_text(),
)


def call(*arguments, **keywords):
    return arguments, keywords


def real(*shape):
    return torch.rand(shape, generator=torch.Generator().manual_seed(len(shape))) + 0.1


def whole(limit, *shape):
    return torch.randint(limit, shape, generator=torch.Generator().manual_seed(limit))


A, V, CUBE, IMAGE, VIDEO = real(4, 4), real(4), real(2, 3, 4), real(2, 4, 6, 6), real(1, 4, 4, 4, 4)
ROW, INDEX, MASK = real(2, 4, 8), whole(4, 4, 4), real(4, 4) > 0.6


def layers(gates):
    return [real(gates * 3, 4), real(gates * 3, 3), real(gates * 3), real(gates * 3)]


def recurrent(gates, state):
    # has_biases, num_layers, dropout, train, bidirectional, batch_first
    return call(CUBE, state, layers(gates), True, 1, 0.0, False, False, True)


STATE = real(1, 2, 3)

# One call of each operator, as PyTorch takes it.
CALLS = {
    "mm": call(A, A),
    "addmm": call(V, A, A, beta=2, alpha=0.5),
    "bmm": call(CUBE, real(2, 4, 3)),
    "baddbmm": call(real(2, 3, 3), CUBE, real(2, 4, 3), alpha=2),
    "mv": call(A, V),
    "addmv": call(V, A, V, beta=0.5),
    "dot": call(V, V),
    "linear": call(A, A, V),
    "matmul": call(CUBE, A),
    "einsum": call("ij,jk->ik", [A, A]),
    "bilinear": call(A, A, real(5, 4, 4), None),
    "convolution": call(IMAGE, real(5, 4, 3, 3), None, [1, 1], [0, 0], [1, 1], False, [0, 0], 1),
    "conv1d": call(ROW, real(5, 4, 3), None, [2], [1]),
    "conv2d": call(IMAGE, real(6, 2, 3, 3), real(6), [2, 2], [1, 1], [1, 1], 2),
    "conv3d": call(VIDEO, real(2, 4, 3, 3, 3), None, [1, 1, 1], [1, 1, 1]),
    "conv_transpose1d": call(ROW, real(4, 5, 3), None, [2]),
    "conv_transpose2d": call(IMAGE, real(4, 5, 3, 3), None, [2, 2], [1, 1], [1, 1]),
    "conv_transpose3d": call(VIDEO, real(4, 2, 3, 3, 3), None, [2, 2, 2]),
    "layer_norm": call(A, [4], V, V, 1e-5),
    "native_layer_norm": call(A, [4], V, V, 1e-5),
    "batch_norm": call(IMAGE, V, V, None, None, True, 0.1, 1e-5, False),
    "native_batch_norm": call(IMAGE, V, V, None, None, True, 0.1, 1e-5),
    "_native_batch_norm_legit": call(IMAGE, V, V, True, 0.1, 1e-5),
    "instance_norm": call(IMAGE, V, V, None, None, True, 0.1, 1e-5, False),
    "group_norm": call(IMAGE, 2, V, V, 1e-5),
    "native_group_norm": call(IMAGE, V, V, 2, 4, 36, 2, 1e-5),
    "rms_norm": call(A, [4], V, 1e-6),
    "softmax": call(A, 1, dtype="f64"),
    "_softmax": call(A, 1, False),
    "log_softmax": call(A, -1),
    "_log_softmax": call(A, 1, False),
    "logsumexp": call(A, [1], True),
    "scaled_dot_product_attention": call(
        real(1, 2, 4, 8), real(1, 2, 4, 8), real(1, 2, 4, 8), None, 0.0, True, scale=0.3
    ),
    "max_pool1d": call(ROW, [2]),
    "max_pool2d": call(IMAGE, [2, 2], [2, 2], [1, 1]),
    "max_pool3d": call(VIDEO, [2, 2, 2]),
    "max_pool2d_with_indices": call(IMAGE, [3, 3], [2, 2]),
    "max_pool3d_with_indices": call(VIDEO, [2, 2, 2]),
    "avg_pool1d": call(ROW, [3], [1], [1]),
    "avg_pool2d": call(IMAGE, [3, 3], [1, 1], [1, 1], True, False, 7),
    "avg_pool3d": call(VIDEO, [2, 2, 2]),
    "adaptive_avg_pool1d": call(ROW, [3]),
    "adaptive_avg_pool2d": call(IMAGE, [3, 2]),
    "_adaptive_avg_pool2d": call(IMAGE, [3, 2]),
    "adaptive_avg_pool3d": call(VIDEO, [2, 2, 2]),
    "_adaptive_avg_pool3d": call(VIDEO, [2, 2, 2]),
    "adaptive_max_pool1d": call(ROW, [3]),
    "adaptive_max_pool2d": call(IMAGE, [3, 2]),
    "adaptive_max_pool3d": call(VIDEO, [2, 2, 2]),
    "upsample_nearest2d": call(IMAGE, [12, 9]),
    "upsample_bilinear2d": call(IMAGE, [12, 9], True),
    "grid_sampler": call(IMAGE, real(2, 3, 3, 2), 0, 0, False),
    "lstm": recurrent(4, [STATE, STATE]),
    "gru": recurrent(3, STATE),
    "rnn_tanh": recurrent(1, STATE),
    "rnn_relu": recurrent(1, STATE),
    "cumsum": call(A, 1, dtype="float64"),
    "cumprod": call(A, 0),
    "cummax": call(A, 1),
    "cummin": call(A, 1),
    "topk": call(A, 2, 1, True, True),
    "sort": call(A, 1, True),
    "argsort": call(A, 1),
    "sum": call(A, [1], True, dtype="torch.float64"),
    "mean": call(A, [0, 1]),
    "prod": call(A, 1),
    "amax": call(A, [1]),
    "amin": call(A, [0], True),
    "max": call(A, 1),
    "min": call(A),
    "argmax": call(A, 1),
    "argmin": call(A),
    "var": call(A, [1], correction=0),
    "var_mean": call(A, [1], correction=1, keepdim=True),
    "std": call(A, [1], correction=1),
    "norm": call(A, 2, [1], True),
    "linalg_vector_norm": call(A, 2, [1], True),
    "all": call(MASK, 1),
    "any": call(MASK),
    "embedding": call(A, INDEX),
    "gather": call(A, 1, INDEX),
    "index_select": call(A, 0, whole(4, 3)),
    "index": call(A, [None, whole(4, 3)]),
    "scatter": call(A, 1, torch.arange(4).expand(4, 4), real(4, 4)),
    "scatter_add": call(A, 1, INDEX, A),
    "cat": call([A, A], 1),
    "stack": call([A, A], 0),
    "clone": call(A),
    "transpose_copy": call(CUBE, 1, 2),
    "permute_copy": call(CUBE, [2, 0, 1]),
    "flip": call(CUBE, [0, 2]),
    "roll": call(A, [1], [0]),
    "repeat": call(A, [2, 1]),
    "constant_pad_nd": call(A, [1, 1], 2.5),
    "pad": call(IMAGE, [1, 1, 1, 1], "reflect"),
    "tril": call(A, -1),
    "triu": call(A, 1),
    "relu": call(A),
    "gelu": call(A, approximate="tanh"),
    "silu": call(A),
    "sigmoid": call(A),
    "tanh": call(A),
    "add": call(A, A, alpha=2),
    "sub": call(A, V, alpha=0.5),
    "mul": call(A, 2.0),
    "div": call(A, V, rounding_mode="floor"),
    "addcmul": call(A, V, V, value=0.5),
    "mse_loss": call(A, V.expand(4, 4), 1),
    "smooth_l1_loss": call(A, real(4, 4) * 2, 1, 0.5),
    "huber_loss": call(A, real(4, 4) * 2, 2, 0.5),
    "kl_div": call(A.log(), A, 2, log_target=False),
    "nll_loss": call(A, whole(4, 4)),
    "cross_entropy_loss": call(A, whole(4, 4), None, 1, -100, 0.1),
    "cosine_similarity": call(A, A, 1, 1e-8),
}


def pytorch_says(op, arguments, keywords):
    types = {"f64": torch.float64, "float64": torch.float64, "torch.float64": torch.float64}
    keywords = {key: types.get(value, value) if isinstance(value, str) else value
                for key, value in keywords.items()}  # fmt: skip
    return getattr(torch.ops.aten, op)(*arguments, **keywords)


def flat(result):
    return [result] if isinstance(result, torch.Tensor) else [t for x in result for t in flat(x)]


@pytest.fixture
def file():
    return exported.module("tensors", "library_calls")


def check(made, expected):
    assert len(made) == len(flat(expected))
    for a, b in zip(made, flat(expected), strict=True):
        assert a.dtype == b.dtype
        assert a.is_contiguous()
        torch.testing.assert_close(a, b, rtol=1e-6, atol=1e-6, equal_nan=True)


CPU = torch.device("cpu")


@pytest.mark.parametrize("op", CALLS)
def test_a_call_without_an_overload_is_what_pytorch_calls(file, op):
    arguments, keywords = CALLS[op]
    made = file._MtmcLibraryCall(f"aten::{op}")(CPU, *arguments, **keywords)
    check(made, pytorch_says(op, arguments, keywords))


@pytest.mark.parametrize("op", CALLS)
def test_a_call_with_its_overload_takes_all_by_position_as_a_traced_graph_gives_it(file, op):
    arguments, keywords = CALLS[op]
    overload, schema = overload_of(file, op, arguments, keywords)
    given = list(arguments)
    last = max([i for i, a in enumerate(schema.arguments) if a.name in keywords], default=-1)
    for argument in schema.arguments[len(arguments) : last + 1]:
        given.append(keywords.get(argument.name, argument.default_value))
    made = file._MtmcLibraryCall(f"aten::{op}", overload)(CPU, *given)
    check(made, pytorch_says(op, arguments, keywords))


@pytest.mark.parametrize("op", CALLS)
def test_a_call_takes_all_but_the_first_by_keyword(file, op):
    arguments, keywords = CALLS[op]
    overload, schema = overload_of(file, op, arguments, keywords)
    names = [argument.name for argument in schema.arguments]
    given = dict(zip(names[1:], arguments[1:], strict=False)) | keywords
    made = file._MtmcLibraryCall(f"aten::{op}", overload)(CPU, arguments[0], **given)
    check(made, pytorch_says(op, arguments, keywords))


def shortened(schema, arguments):
    """With one number for a list of equal ones, where the schema lets it stand for them."""
    return [
        value[0]
        if argument.N and isinstance(value, list) and value == value[:1] * argument.N
        else value
        for argument, value in zip(schema.arguments, arguments, strict=False)
    ]


@pytest.mark.parametrize("op", CALLS)
def test_a_number_stands_for_a_list_of_equal_ones(file, op):
    arguments, keywords = CALLS[op]
    overload, schema = overload_of(file, op, arguments, keywords)
    short = shortened(schema, arguments)
    made = file._MtmcLibraryCall(f"aten::{op}", overload)(CPU, *short, **keywords)
    check(made, pytorch_says(op, arguments, keywords))


def test_the_calls_of_this_test_are_allowed():
    assert len(CALLABLE) > 300 and CALLS.keys() <= set(CALLABLE)


def any_value(kind):
    """What a program would write for a type of a schema; None for what it cannot write."""
    name = kind.kind()
    if name == "OptionalType":
        return any_value(kind.getElementType())
    if name == "ListType":
        item = any_value(kind.getElementType())
        return None if item is None else [item]
    return {
        "TensorType": torch.empty(2, 2, device="meta"), "IntType": 1, "SymIntType": 1,
        "FloatType": 0.5, "NumberType": 2, "BoolType": True, "StringType": "none",
    }.get(name)  # fmt: skip


# What PyTorch says of arguments that are not in the form of the schema.
WRONG_FORM = re.compile(
    "expected at most|missing value|Unknown keyword|Expected a value of type|positional argument"
)


@pytest.mark.parametrize("op", CALLABLE)
def test_the_form_of_every_overload_is_one_that_pytorch_takes(file, op):
    packet = getattr(torch.ops.aten, op)
    for overload in packet.overloads():
        schema = getattr(packet, overload)._schema
        # Others write into what is given, or compute with Python's numbers and lists.
        if "Tensor" not in str(schema.returns) or any(a.is_out for a in schema.arguments):
            continue
        arguments = [a for a in schema.arguments if "Device" not in str(a.type)]
        needed = [a for a in arguments if not a.has_default_value() or a.kwarg_only]
        given = {a.name: any_value(a.type) for a in needed}
        # Generators, layouts and the like are not a program's to choose.
        given = {name: value for name, value in given.items() if value is not None}
        call = file._MtmcLibraryCall(f"aten::{op}", overload)
        try:
            call(torch.device("meta"), **given)
        except Exception as error:  # Of shapes, which nobody cares for here.
            assert not WRONG_FORM.search(str(error)), f"{schema}: {error}"
            assert "no form of" not in str(error), f"{schema}: {error}"


def test_most_windows_have_a_short_form():
    schema = torch.ops.aten.conv2d.default._schema
    assert shortened(schema, CALLS["conv2d"][0])[3:] == [2, 1, 1, 2]


def overload_of(file, op, arguments, keywords):
    function, _, _ = file._MtmcLibraryCall(f"aten::{op}")._resolve(arguments, keywords)
    return function._overloadname, function._schema


def test_a_call_that_makes_a_tensor_makes_it_where_the_program_runs(file):
    device = torch.device("meta")
    [made] = file._MtmcLibraryCall("aten::full")(device, [2, 3], 1.5, dtype="f16")
    assert (made.device, made.dtype, made.shape) == (device, torch.float16, (2, 3))
    # As a traced graph has it: all arguments by position, and no device.
    traced = file._MtmcLibraryCall("aten::randn", "default")
    [drawn] = traced(device, [2, 3], None, None, None)
    assert (drawn.device, drawn.dtype) == (device, torch.float32)
    with pytest.raises(TypeError):
        file._MtmcLibraryCall("aten::randn", "default")(device, [2, 3], None, None, None, None, None)


def test_arguments_that_no_overload_takes_are_refused(file):
    with pytest.raises(TypeError, match="aten::relu"):
        file._MtmcLibraryCall("aten::relu")(CPU, A, 3)
    with pytest.raises(TypeError, match="aten::mm"):
        file._MtmcLibraryCall("aten::mm")(CPU, A, 3)


@pytest.fixture(params=["direct", "public"])
def settings_file(request):
    """A file under a PyTorch that still has the functions which it reads settings with, and one
    under a PyTorch that has the public ones alone."""
    if request.param == "direct":
        return exported.module("tensors", "library_calls")
    public = types.ModuleType("torch")
    public.__dict__.update({name: value for name, value in vars(torch).items() if name != "_C"})
    return exported.module("tensors", "library_calls", _mtmc_torch=public)


def state():
    backends = torch.backends
    return (backends.cuda.matmul.fp32_precision, backends.cudnn.conv.fp32_precision,
            backends.cudnn.rnn.fp32_precision, backends.cudnn.benchmark,
            backends.cudnn.deterministic)  # fmt: skip


@pytest.mark.parametrize("name", ["default", "tf32", "ieee"])
@pytest.mark.parametrize("api", ["untouched", "older", "newer"])
def test_a_call_runs_under_its_precision_and_gives_the_callers_back(settings_file, name, api):
    clean = state()
    if api == "older":
        torch.backends.cuda.matmul.allow_tf32 = True
    elif api == "newer":
        torch.backends.cuda.matmul.fp32_precision = "tf32"
    torch.backends.cudnn.deterministic = True
    before, seen = state(), []
    try:
        with settings_file._mtmc_settings:
            settings_file._mtmc_settings.prepare(name, is_searched=True)
            seen = state()
        assert state() == before
    finally:
        torch.backends.cudnn.deterministic = False
        if api == "older":
            torch.backends.cuda.matmul.allow_tf32 = False
        torch.backends.cuda.matmul.fp32_precision = "none"
    assert state() == clean
    tf32 = {"default": (False, True), "tf32": (True, True), "ieee": (False, False)}[name]
    assert tuple(word == "tf32" for word in seen[:2]) == tf32
    assert seen[1] == seen[2]
    assert seen[3:] == (True, False)


def test_only_a_convolution_is_searched_for(file, monkeypatch):
    monkeypatch.setattr(torch.backends.cudnn, "benchmark", False)
    linear = file._MtmcLibraryCall("aten::linear")
    convolution = file._MtmcLibraryCall("aten::conv1d")
    with file._mtmc_settings:
        linear(CPU, A, A)
        assert not torch.backends.cudnn.benchmark
        convolution(CPU, A[None], A[None])
        assert torch.backends.cudnn.benchmark
    assert not torch.backends.cudnn.benchmark


def test_each_call_of_a_run_has_its_own_precision(file):
    with file._mtmc_settings:
        for name, tf32 in (("tf32", True), ("default", False), ("default", False), ("tf32", True)):
            file._MtmcLibraryCall("aten::mm", precision=name)(CPU, A, A)
            assert torch.backends.cuda.matmul.allow_tf32 == tf32
    assert not torch.backends.cuda.matmul.allow_tf32


def test_a_call_gives_its_result_with_channels_last(file):
    x = torch.randn(2, 3, 5, 7).contiguous(memory_format=torch.channels_last)
    convolution = file._MtmcLibraryCall("aten::conv2d", "default", is_channels_last=True)
    for _ in range(2):
        [made] = convolution(CPU, x, torch.ones(4, 3, 1, 1))
        assert made.is_contiguous() and made.shape == (2, 5, 7, 4)
        torch.testing.assert_close(made[..., 2], x.sum(1))


def test_a_call_that_is_repeated_gives_what_it_gave(file):
    softmax = file._MtmcLibraryCall("aten::softmax")
    linear = file._MtmcLibraryCall("aten::linear")
    for _ in range(2):
        assert torch.equal(softmax(CPU, A, 1, dtype="f64")[0], torch.softmax(A, 1, torch.float64))
        assert torch.equal(linear(CPU, A, A)[0], A @ A.T)


def test_autocast_of_the_caller_does_not_reach_a_call(settings_file):
    linear = settings_file._MtmcLibraryCall("aten::linear")
    with torch.autocast("cpu", dtype=torch.bfloat16):
        with settings_file._mtmc_settings:
            [made] = linear(CPU, A, A)
        assert torch.is_autocast_enabled("cpu")
    assert made.dtype == torch.float32
