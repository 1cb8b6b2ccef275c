# SPDX-License-Identifier: Apache-2.0
"""Runs the model: outputs in the order of the graph, its state left unchanged."""

import contextlib
import copy

import torch

from . import attributes
from .copying import copies, copy_all
from .failure import ProblemFailure, is_out_of_memory
from .precision import Arithmetic, arithmetic
from .problem import map_tensors, seed_torch
from .returned import Returned, is_formed_as, positions
from .wide_convolution import wide_convolutions


class Execution:
    """One model with its graph. Running it restores what `forward` mutates."""

    def __init__(self, problem, model, graph, seed, device, states=None):
        self.model = model
        self._states = states
        self._problem = problem
        self._seed = seed
        self._device = device
        # Paths of attributes that the last run changed, and that are no output of the graph.
        self.forgotten_state = set()
        self._mutations = [
            output for output in graph["outputs"] if output["kind"] != "KIND_USER_OUTPUT"
        ]
        self._changed_states = [
            output["target"]
            for output in self._mutations
            if output["kind"] == "KIND_BUFFER_MUTATION"
        ]
        self._positions = {
            entry["name"]: entry["argumentIndex"]
            for entry in graph["inputs"]
            if entry["kind"] == "KIND_USER_INPUT"
        }
        self.user_outputs = len(graph["outputs"]) - len(self._mutations)
        # Where each user output is among the tensors that the model returns.
        self._result = graph["result"]
        first = positions(self._result)
        self._returned_at = [
            first[output["name"]]
            for output in graph["outputs"]
            if output["kind"] == "KIND_USER_OUTPUT"
        ]

    def run(self, inputs, kind, observer=None, seed=None, state=None, has_gradients=False):
        """Outputs of one forward pass in the arithmetic `kind`, none aliasing an input.

        `state` is the name of one of the model's `parameters.States`, by default the public
        one, which it has again afterwards. `observer` is a context, such as a dispatch mode,
        that is entered around the pass; with `has_gradients` it sees them. Random operations
        start from the same seed each time unless another is given. What the user's code raises
        becomes a ProblemFailure, and so does what runs out of memory before or behind it.
        """
        try:
            with self.in_state(state), torch.set_grad_enabled(has_gradients):
                return self._run(inputs, kind, observer, seed)
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
            raise self._problem.failure_of(error) from error

    def state_of(self, key):
        """Name of the state that the workload `key` has; None is the public one."""
        return self._states.of(key) if self._states else None

    def with_masks_of(self, key):
        """Name of the public state but for masks; None where `key` has none of its own."""
        return self._states.with_masks_of(key) if self._states else None

    def settle(self, key, accepts, holds):
        """Finds values for the state of a mixed workload, as `parameters.States.settle_mixed` does."""
        if self._states:
            self._states.settle_mixed(key, accepts, holds)

    def is_special(self, key):
        """Whether the model has values in the workload `key` that few workloads have."""
        return bool(self._states) and self._states.is_special(key)

    def calm(self, key):
        """Takes those back; false where there are none."""
        return bool(self._states) and self._states.calm(key)

    def in_state(self, state):
        """Context in which the model is in a state."""
        return self._states.applied(state) if self._states else contextlib.nullcontext()

    def _run(self, inputs, kind, observer, seed):
        model = self.model
        if kind == Arithmetic.FP64:
            model = self._problem.call(lambda: map_tensors(copy.deepcopy(model), _widened))
            inputs = [_widened(value) for value in inputs]
        if any(output["kind"] == "KIND_INPUT_MUTATION" for output in self._mutations):
            inputs = [_copied(value) for value in inputs]
        preserved = self.preserved_state(model)
        numbers = arithmetic(kind, self._device)
        with preserved as changed, numbers, wide_convolutions(kind, self._device):
            seed_torch(self._seed if seed is None else seed)
            with observer or contextlib.nullcontext():
                answer = self._problem.call(model, *inputs)
            states = [*model.parameters(), *model.buffers(), *attributes.tensors(model)]
            kept = _storages([*inputs, *states])
            self.forgotten_state = changed() - {output["target"] for output in self._mutations}
            returned = Returned(answer, self._problem.module.__name__)
            self._require_form(returned.structure)
            users = [_dense(returned.tensors[at], kept) for at in self._returned_at]
            return users + self._mutated(model, inputs)

    def _require_form(self, structure):
        if not is_formed_as(structure, self._result):
            raise ProblemFailure(
                "UNTRACEABLE",
                "the model returns another structure or other plain values than when it was "
                "traced; make what it returns independent of tensor values",
            )

    @contextlib.contextmanager
    def preserved_state(self, model=None):
        """Context that gives mutated buffers and attributes their initial values back, and a
        function that tells the paths of changed attributes."""
        model = model or self.model
        with attributes.kept(model) as changed, _PreservedState(model, self._changed_states):
            yield changed

    def _mutated(self, model, inputs):
        """Copies of what the last run has changed."""
        states = state_tensors(model, self._changed_states)
        return [
            inputs[self._positions[output["target"]]].clone()
            if output["kind"] == "KIND_INPUT_MUTATION"
            else states[output["target"]].detach().clone()
            for output in self._mutations
        ]


class _PreservedState:
    def __init__(self, model, targets):
        self._holders = _holders(model, targets)
        self._tensors = [getattr(*holder) for holder in self._holders]
        self._copies = copies(self._tensors)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        copy_all(self._tensors, self._copies)
        for holder, tensor in zip(self._holders, self._tensors):
            # `self.buffer = new` rebinds instead of writing in place.
            if getattr(*holder) is not tensor:
                setattr(*holder, tensor)


def state_tensors(model, targets):
    """The parameters, buffers or plain tensor attributes at attribute paths, by these."""
    return {t: getattr(*holder) for t, holder in zip(targets, _holders(model, targets))}


def _holders(model, targets):
    """(module, name) of each target. To go to each of hundreds by itself takes as long as the
    model's run."""
    if not targets:
        return []
    modules = dict(model.named_modules(remove_duplicate=False))
    split = [target.rpartition(".") for target in targets]
    return [(modules[path], name) for path, _, name in split]


def _widened(value):
    if isinstance(value, torch.Tensor) and value.is_floating_point():
        return value.double()
    return value


def _copied(value):
    return value.clone() if isinstance(value, torch.Tensor) else value


def _storages(values):
    return {
        value.untyped_storage().data_ptr() for value in values if isinstance(value, torch.Tensor)
    }


def _dense(value, kept):
    """A dense tensor that shares no memory with what outlives the run."""
    value = value.detach().contiguous()
    return value.clone() if value.untyped_storage().data_ptr() in kept else value
