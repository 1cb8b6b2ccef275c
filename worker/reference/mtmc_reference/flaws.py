# SPDX-License-Identifier: Apache-2.0
"""What is wrong with a problem, from its behaviour alone.

    kernelbench_<probe>   zeros, mean, input or replay pass KernelBench's own comparison
                          on the public inputs
    half_<probe>          they pass it at 1e-2, the tolerance of 16-bit types
    public_<probe>        they pass here on the public inputs, and fail on hidden ones
    constant_output       the same number everywhere, whatever the inputs
    input_independent     the same outputs for all inputs
    partial_input         half of an input can be exchanged without KernelBench noticing
    random_output         another seed of the generator gives other outputs
    random_operation      numbers are drawn in forward, and no output shows it
    integer_input         KernelBench casts inputs to floats; the model then fails
    huge_output           outputs beyond 1e8: an absolute tolerance means nothing
    dead_operation        an operator computes what nobody uses
    python_state          forward changes attributes that a trace does not see, such as counters
                          and lists: each run starts from what the constructor left in them
    unused_parameter      a parameter that no output depends on
    identity_operation    an operator hands its operand on, on every workload
    identity_parameter    so does one with a parameter, such as a scale of 1

They are reported and judge nobody. Each costs at most a few forward passes.
"""

import contextlib
import math
import time

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from .compare import spreads, tolerances
from .failure import ProblemFailure
from .oracle import kernelbench_tolerance
from .precision import Arithmetic
from .probes import needed_tolerances
from .workload import Key

_HALF_TOLERANCE = 1e-2
_HUGE = 1e8
# Differences below this are rounding: outputs that differ less are the same.
_SAME_TOLERANCE = 1e-6
# Distributions on which an operator must be an identity to count as one, besides
# the public inputs: values of both signs, and outside of [-1, 1].
_CONTRASTS = ("DISTRIBUTION_TIMES_3", "DISTRIBUTION_NEGATED")
# Seconds after which no further flaw is looked for.
_BUDGET_SECONDS = 3.0
_MAX_HALVES = 6
_OTHER_SEED = 0x07E2
# Evaluations draw the workload of distribution N with seed 100 + N (worker/verify/workloads.cc).
_FIRST_DISTRIBUTION_SEED = 101


def distribution_keys(names):
    """Workload keys of the distributions, as an evaluation with default options asks them."""
    return [Key(_FIRST_DISTRIBUTION_SEED + index, name) for index, name in enumerate(names)]


class FlawFinder:
    """Looks at one problem. `strict` are its public outputs in strict FP32."""

    def __init__(self, judge, graph, inputs, strict):
        self._judge = judge
        self._graph = graph
        self._inputs = inputs
        self._count = judge.execution.user_outputs
        self._strict = strict[: self._count]
        self._contrasts = []
        self._allowed = [kernelbench_tolerance(y.dtype) for y in self._strict]

    def find(self, replayed, dropped):
        """Names of the flaws, except dead operations, which the graph no longer has.

        `replayed` are strict outputs of a hidden seed, or None; `dropped` are the
        distributions that the model must not be run on.
        """
        self._contrasts = [Key(0, name) for name in _CONTRASTS if name not in dropped]
        deadline = time.monotonic() + _BUDGET_SECONDS
        found = []
        for search in (
            lambda: self._tolerated_probes(replayed),
            self._graph_flaws,
            self._huge_output,
            self._random_output,
            self._integer_input,
            lambda: self._independence(replayed),
            self._identities,
            self._partial_input,
        ):
            if time.monotonic() > deadline:
                break
            # A flaw that cannot be looked for is not reported.
            with contextlib.suppress(ProblemFailure, torch.cuda.OutOfMemoryError):
                found += search()
        return found

    def _tolerated_probes(self, replayed):
        answer = []
        needed = needed_tolerances(self._strict, self._inputs, replayed)
        for name, values in needed.items():
            if all(t <= allowed for t, allowed in zip(values, self._allowed)):
                answer.append(f"kernelbench_{name}")
            elif all(t <= _HALF_TOLERANCE for t in values):
                answer.append(f"half_{name}")
        return answer

    def _graph_flaws(self):
        used = {output["value"] for output in self._graph["outputs"]}
        for node in self._graph["nodes"]:
            used.update(_names(node["arguments"]))
        unused = any(
            entry["kind"] == "KIND_PARAMETER" and entry["name"] not in used
            for entry in self._graph["inputs"]
        )
        return ["unused_parameter"] * unused

    def _huge_output(self):
        floats = [y for y in self._strict if y.is_floating_point()]
        return ["huge_output"] * any(_HUGE < s.largest() < math.inf for s in spreads(floats))

    def _random_output(self):
        if not self._judge.draws_random:
            return []
        again = self._run(self._inputs, seed=_OTHER_SEED)
        return ["random_operation" if self._is_close(again, self._allowed) else "random_output"]

    def _integer_input(self):
        """KernelBench converts every tensor, whole numbers too."""
        if not any(_is_whole_number(value) for value in self._inputs):
            return []
        # An index that is out of range after a cast would end the device's context.
        cast = [v.float() if _is_whole_number(v) else v for v in self._inputs]
        try:
            self._run(cast)
        except ProblemFailure:
            return ["integer_input"]
        return []

    def _independence(self, replayed):
        if replayed is None or not self._is_close(replayed, self._same()):
            return []
        for key in self._contrasts:
            if not self._is_close(self._run(self._judge.workloads.draw(key)), self._same()):
                return []
        flat = all(s.mean_tolerance() <= _SAME_TOLERANCE for s in spreads(self._strict))
        return ["constant_output"] if flat else ["input_independent"]

    def _identities(self):
        found = _Identities(self._parameters())
        self._run(self._inputs, observer=found)
        for key in self._contrasts:
            if not found.places:
                return []
            found.restart()
            self._run(self._judge.workloads.draw(key), observer=found)
        kinds = set(found.places.values())
        return ["identity_operation"] * (False in kinds) + ["identity_parameter"] * (True in kinds)

    def _partial_input(self):
        """Whether the second half along an axis can come from another draw unnoticed."""
        other = self._judge.workloads.draw(Key(1))
        halves = 0
        for index, value in enumerate(self._inputs):
            if not isinstance(value, torch.Tensor) or not value.is_floating_point():
                continue
            for axis, extent in enumerate(value.shape):
                if extent < 2 or halves >= _MAX_HALVES:
                    continue
                halves += 1
                mixed = list(self._inputs)
                kept = extent - extent // 2
                fresh = other[index].narrow(axis, kept, extent - kept)
                mixed[index] = torch.cat([value.narrow(axis, 0, kept), fresh], dim=axis)
                if self._is_close(self._run(mixed), self._allowed):
                    return ["partial_input"]
        return []

    def _run(self, inputs, **options):
        outputs = self._judge.execution.run(inputs, Arithmetic.STRICT, **options)
        return outputs[: self._count]

    def _same(self):
        return [_SAME_TOLERANCE if y.is_floating_point() else 0.0 for y in self._strict]

    def _is_close(self, outputs, allowed):
        needed = tolerances(list(zip(outputs[: self._count], self._strict)))
        return all(t <= most for t, most in zip(needed, allowed))

    def _parameters(self):
        model = self._judge.execution.model
        return {tensor.untyped_storage().data_ptr() for tensor in model.parameters()}


class _Identities(TorchDispatchMode):
    """Finds operators whose result equals their first operand, by position in the run."""

    # Operators that move elements and compute nothing, or only make tensors.
    _MOVES = frozenset(
        """
        clone copy contiguous _to_copy cat stack index index_select gather permute expand repeat
        slice_scatter select_scatter constant_pad_nd roll flip tril triu zeros_like ones_like
        native_dropout _reshape_copy as_strided lift_fresh alias max_pool2d_with_indices
        """.split()
    )

    def __init__(self, parameters):
        super().__init__()
        self._parameters = parameters
        self._position = 0
        self._is_first = True
        # Position of an identity to whether a parameter takes part in it.
        self.places = {}

    def restart(self):
        """Starts another run of the same model; `places` loses what is none there."""
        self._position = 0
        self._is_first = False

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        position, self._position = self._position, self._position + 1
        operand = self._operand(func, args)
        if operand is None or not (self._is_first or position in self.places):
            return func(*args, **(kwargs or {}))
        before = operand.clone() if func._schema.is_mutable else operand
        out = func(*args, **(kwargs or {}))
        if isinstance(out, torch.Tensor) and self._is_identity(before, out):
            if self._is_first:
                self.places[position] = self._has_parameter(args)
        else:
            self.places.pop(position, None)
        return out

    def _operand(self, func, args):
        name = func._schema.name.split("::")[-1].rstrip("_")
        is_view = any(r.alias_info and not r.alias_info.is_write for r in func._schema.returns)
        if is_view or name in self._MOVES or not args or not isinstance(args[0], torch.Tensor):
            return None
        return args[0] if args[0].is_floating_point() and args[0].numel() else None

    def _is_identity(self, operand, out):
        if out.numel() != operand.numel() or out.dtype != operand.dtype:
            return False
        if out.shape != operand.shape and operand.squeeze().shape != out.squeeze().shape:
            return False
        return torch.equal(operand.reshape(-1), out.reshape(-1))

    def _has_parameter(self, args):
        tensors = [value for value in args[1:] if isinstance(value, torch.Tensor)]
        return any(t.untyped_storage().data_ptr() in self._parameters for t in tensors)


def _is_whole_number(value):
    return (
        isinstance(value, torch.Tensor)
        and not value.is_floating_point()
        and value.dtype != torch.bool
    )


def _names(arguments):
    for argument in arguments:
        if "value" in argument:
            yield argument["value"]
        elif "list" in argument:
            yield from _names(argument["list"]["elements"])
