# SPDX-License-Identifier: Apache-2.0
"""A model to `torch.export`'s program, or the sentence that says why not.

Composites are kept (`aten.linear`, `aten.layer_norm`); an empty decomposition table
then only makes the graph functional, so that each value is defined once and each
mutation is an output.
"""

import contextlib
import gc
import re

import torch
from torch._subclasses.fake_tensor import FakeTensor

from . import attributes
from .failure import ProblemFailure, is_out_of_memory, summary, user_line
from .mended import mended_numbers, mended_recurrence
from .returned import flattened

# Operators that only check, and are not part of the computation.
CHECKS = frozenset({"aten::_assert_tensor_metadata", "aten::sym_constrain_range_for_size"})

# What to do about an error of the trace, by what its text holds; the first that fits.
_ADVICE = (
    (
        r"data-dependent|_local_scalar_dense|DataDependent|unbacked|non-static",
        "make control flow and sizes independent of tensor values: choose elements with "
        "torch.where or a mask instead of `if` or indexing by a condition",
    ),
    (
        r"DynamicOutputShape|dynamic shape operator",
        "the size of this result depends on values; use a form of fixed size, such as a mask",
    ),
    (
        r"mutated in the forward|assigned during export|as buffer",
        "register this state as a buffer of the module with register_buffer",
    ),
    (
        r"Expected input|pytree|Unsupported output type|output type",
        "return tensors in tuples, lists or dictionaries",
    ),
    (
        r"attribute '\w+' already exists",
        "rename the parameter, buffer or submodule of that name: torch.export keeps something of "
        "its own under it",
    ),
)
# Where a file may take a number out of a tensor.
_NUMBER = re.compile(r"\b(float|int)\(")
_USUAL_ADVICE = "make control flow and state independent of tensor values"


def export(problem, model, inputs):
    """The exported program, which returns a tuple of tensors; the lines of dead operations; the
    structure of what the model itself returns; and the paths of buffers that are plain
    attributes of the model. Raises ProblemFailure.

    Plain attributes are traced as buffers, because `forward` may change them; where that
    fails, since it looks at their values, they are constants.
    """
    with attributes.as_buffers(model) as plain:
        if plain:
            try:
                return *_export(problem, model, inputs), plain
            except Exception:
                # The second trace says what is wrong.
                pass
    try:
        return *_export(problem, model, inputs), set()
    except (KeyboardInterrupt, ProblemFailure):
        raise
    except BaseException as error:
        if _NUMBER.search(problem.source):
            with contextlib.suppress(Exception), mended_numbers(problem.module):
                return *_export(problem, model, inputs), set()
        raise _failure(problem, model, inputs, error) from error


def _export(problem, model, inputs):
    traced = flattened(model, problem.module.__name__)
    with torch.no_grad(), _uncollected(), mended_recurrence(), traced as structures:
        exported = torch.export.export(model, tuple(inputs), strict=False)
        dead = _dead_lines(exported.graph, problem.path)
        return exported.run_decompositions({}), dead, structures[-1]


@contextlib.contextmanager
def _uncollected():
    """Garbage waits for the end of the block. A trace of a network makes a million objects that
    live on, and to look through them again and again takes a quarter of its time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _failure(problem, model, inputs, error):
    if is_out_of_memory(error):
        return problem.failure_of(error)
    # A model that does not run at all is the user's first thing to fix.
    if not any(isinstance(value, FakeTensor) for value in inputs):
        with torch.no_grad(), attributes.kept(model):
            problem.call(model, *inputs)
    return untraceable(user_line(error, problem.path), summary(error), _advice(error), error)


def _advice(error):
    text = f"{type(error).__name__}: {error}"
    return next((advice for part, advice in _ADVICE if re.search(part, text)), _USUAL_ADVICE)


def _dead_lines(graph, path):
    """User lines of operators that neither an output nor a change of state depends on."""
    operators = [
        node
        for node in graph.nodes
        if node.op == "call_function" and isinstance(node.target, torch._ops.OpOverload)
    ]
    ends = [node for node in graph.nodes if node.op == "output"]
    ends += [node for node in operators if node.target._schema.is_mutable]
    live = needed(ends)
    dead = [n for n in operators if n not in live and n.target._schema.name not in CHECKS]
    return sorted({found for found in (line(node, path) for node in dead) if found})


def needed(ends):
    """The nodes that `ends` depend on, and these."""
    pending, live = list(ends), set()
    while pending:
        node = pending.pop()
        if node not in live:
            live.add(node)
            pending.extend(node.all_input_nodes)
    return live


def untraceable(line_number, why, advice=_USUAL_ADVICE, cause=None):
    """The ProblemFailure for an operation of the user's file."""
    where = f"line {line_number}" if line_number else "forward"
    return ProblemFailure(
        "UNTRACEABLE", f"{where} cannot be traced ({why}); {advice}", line_number, cause
    )


def line(node, path):
    """Deepest line of the user's file in the node's stack, which lists it outermost first."""
    found = 0
    marker = f'File "{path}", line '
    for text in (node.meta.get("stack_trace") or "").splitlines():
        if text.strip().startswith(marker):
            found = int(text.strip()[len(marker) :].split(",")[0])
    return found
