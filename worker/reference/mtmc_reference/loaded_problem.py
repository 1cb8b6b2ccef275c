# SPDX-License-Identifier: Apache-2.0
"""One problem on one device: traced, inspected, prepared, compared and timed."""

import platform

import torch

from . import cost, share, workload
from .baseline import Baselines
from .compare import error, is_allclose
from .deadline import deadline, parse_duration
from .execution import Execution, state_tensor
from .expectation import Expectations
from .failure import ProblemFailure
from .oracle import PRECISIONS, Oracle, bounds, kernelbench_tolerance, own_tolerances
from .precision import Arithmetic
from .probes import passing_probes
from .problem import ProblemFile
from .tensor_type import data_type, torch_dtype
from .trace import draws_random, trace

_DEFAULT_PRECISION = "PRECISION_KERNELBENCH"
# Workload whose outputs are replayed against the public one.
_REPLAY_WORKLOAD = 1


class LoadedProblem:
    """One problem on one device, from import to comparison."""

    def __init__(self, scratch, request):
        options = request.get("problem", {})
        self._scratch = scratch
        self._device = torch.device(request.get("device") or "cpu")
        limits = request.get("limits", {})
        self._limit = int(limits.get("memoryBytes", 0))
        self._seed = int(options.get("seed", 0))
        precision = options.get("precision", _DEFAULT_PRECISION)
        self._precision = precision if precision in PRECISIONS else _DEFAULT_PRECISION
        path = request.get("path", "")
        with deadline(parse_duration(limits.get("traceTimeout", "")), path):
            self._trace(path, bool(options.get("randomizeIdentityParameters", False)))
        self._execution = Execution(
            self._problem, self._model, self._graph, self._seed, self._device
        )
        self._oracle = Oracle(self._execution, self._device, draws_random(self._graph))
        self._expectations = Expectations(self._execution, self._oracle, self._device)
        self._baselines = Baselines(self._execution, self._device)
        self._bounds = {}
        self._publication = None
        self._workload = None

    def _trace(self, path, randomize_identity):
        """Imports the file, builds the model, draws the public inputs, makes the graph."""
        self._problem = ProblemFile(path)
        self._check_memory(workload.predict_bytes(self._problem), "inputs")
        self._model = self._problem.build_model(self._seed, self._device, randomize_identity)
        self._inputs = workload.draw(self._problem, self._seed, 0, self._device)
        self._form = workload.form(self._inputs)
        self._graph, self._constants = trace(self._problem, self._model, self._inputs)
        values = self._graph["inputs"] + self._graph["outputs"]
        need = sum(cost.type_bytes(value["type"]) for value in values)
        self._check_memory(need, "inputs, parameters and outputs")

    def release(self):
        """Frees what is shared with other processes."""
        if self._publication is not None:
            self._publication.release()
            self._publication = None

    def inspect(self):
        """Runs the reference in every arithmetic; returns mtmc.v1.Inspection."""
        inputs = self._inputs
        strict = self._execution.run(inputs, Arithmetic.STRICT)
        self._check_outputs(strict)
        self._check_deterministic(inputs, strict)
        expected = self._oracle.expected(inputs, strict)
        own = own_tolerances(self._execution, inputs, expected, strict, self._device)
        dtypes = [torch_dtype(output["type"]["dataType"]) for output in self._graph["outputs"]]
        self._bounds = bounds(own, expected, dtypes)
        probes = self._passing_probes(inputs, expected)
        return {
            "graph": self._graph,
            "minimumBytes": cost.minimum_bytes(self._graph),
            "contractionFlops": cost.contraction_flops(self._graph),
            "passingProbes": probes,
            "bounds": [
                {"precision": name, "tolerances": self._bounds[name]} for name in PRECISIONS
            ],
            "versions": self._versions(),
        }

    def prepare(self, number):
        """Draws, computes what is expected, then shares; the old workload is freed first."""
        self.release()
        # The old tensors go before the new ones come: two sets may not fit.
        self._inputs = None
        self._inputs = workload.draw(self._problem, self._seed, number, self._device)
        workload.require_same_form(self._inputs, self._form)
        self._workload = number
        self._expectations.prepare(number, self._inputs)
        # The runner needs the memory that the fp64 run has used.
        workload.return_cached_memory()
        self._publication = share.publish(self._shared_tensors(), self._scratch, self._device)
        return {"inputs": self._publication.messages}

    def compare(self, messages):
        """Errors of every output against the prepared workload's expectation."""
        self._require_prepared()
        try:
            with share.opened(messages, self._device) as outputs:
                return self._compared(outputs)
        except (ValueError, OSError, KeyError) as problem:
            return {"isCorrect": False, "message": f"outputs cannot be read: {problem}"}

    def time_baseline(self, baseline, **options):
        """Seconds of each sample on the prepared inputs."""
        self._require_prepared()
        return self._baselines.sample(baseline, self._inputs, **options)

    def _require_prepared(self):
        if self._workload is None:
            raise ProblemFailure("NOT_PREPARED", "no workload is prepared; send Prepare first")

    def _check_memory(self, need, what):
        workload.require_memory(need, self._limit, self._device, what)

    def _check_outputs(self, outputs):
        have = [(list(y.shape), data_type(y.dtype)) for y in outputs]
        want = [(o["type"]["shape"], o["type"]["dataType"]) for o in self._graph["outputs"]]
        if have != want:
            raise ProblemFailure(
                "UNTRACEABLE",
                "the traced graph has other outputs than the model; make its control flow static",
            )

    def _check_deterministic(self, inputs, first):
        again = self._execution.run(inputs, Arithmetic.STRICT)
        for y, r, output in zip(again, first, self._graph["outputs"]):
            # Atomic additions in another order differ by less than this.
            allowed = kernelbench_tolerance(y.dtype) if y.is_floating_point() else 0.0
            if error(y, r).tolerance > allowed:
                raise ProblemFailure(
                    "NOT_DETERMINISTIC",
                    f"output {output['name']} differs between two runs on the same inputs and "
                    "seed; make forward depend on its inputs and torch's generator only",
                )

    def _passing_probes(self, inputs, expected):
        count = self._execution.user_outputs
        replayed = None
        if workload.total_bytes(inputs):
            other = workload.draw(self._problem, self._seed, _REPLAY_WORKLOAD, self._device)
            workload.require_same_form(other, self._form)
            replayed = self._execution.run(other, Arithmetic.STRICT)[:count]
        allowed = self._bounds[self._precision][:count]
        return passing_probes(expected[:count], allowed, inputs, replayed)

    def _shared_tensors(self):
        tensors = []
        for entry in self._graph["inputs"]:
            if entry["kind"] == "KIND_USER_INPUT":
                tensor = self._inputs[entry["argumentIndex"]]
            elif entry["kind"] == "KIND_CONSTANT":
                tensor = self._constants[entry["target"]].to(self._device)
            else:
                tensor = state_tensor(self._model, entry["target"])
            tensors.append((entry["name"], tensor))
        return tensors

    def _compared(self, outputs):
        expectation = self._expectations.current
        errors, is_allclose_everywhere = [], True
        for index, output in enumerate(self._graph["outputs"]):
            actual = outputs.get(output["name"])
            _require_form(actual, output)
            reference = expectation.reference[index]
            distance = error(actual, reference)
            errors.append(
                {
                    "output": output["name"],
                    "toleranceNeeded": distance.tolerance,
                    "toleranceAllowed": self._bounds[self._precision][index],
                    "maxAbsoluteError": distance.max_absolute,
                    "worstIndex": distance.worst_index,
                    "workload": f"seed {self._workload}",
                }
            )
            if index < self._execution.user_outputs:
                eager = expectation.eager[index]
                tolerance = kernelbench_tolerance(eager.dtype)
                is_allclose_everywhere &= is_allclose(actual, eager, tolerance)
        needed = [entry["toleranceNeeded"] for entry in errors]
        satisfied = [
            name
            for name in PRECISIONS
            if all(n <= allowed for n, allowed in zip(needed, self._bounds[name]))
        ]
        is_correct = self._precision in satisfied
        return {
            "isCorrect": is_correct,
            "errors": errors,
            "satisfied": satisfied,
            "kernelbenchAllclose": is_allclose_everywhere,
            "message": "" if is_correct else _worst(errors),
        }

    def _versions(self):
        versions = {
            "torch": torch.__version__,
            "python": platform.python_version(),
            "oracle": self._oracle.kind.value,
        }
        if self._device.type == "cpu":
            versions["threads"] = str(torch.get_num_threads())
        if self._device.type == "cuda":
            versions["cuda"] = torch.version.cuda or ""
            versions["cudnn"] = str(torch.backends.cudnn.version())
            versions["device"] = torch.cuda.get_device_name(self._device)
        return versions


def _require_form(actual, output):
    """Raises ValueError unless the tensor has the output's type; strides do not matter."""
    if actual is None:
        raise ValueError(f"output {output['name']} is missing")
    want = output["type"]
    have = {"dataType": data_type(actual.dtype), "shape": list(actual.shape)}
    if (have["dataType"], have["shape"]) != (want["dataType"], want["shape"]):
        raise ValueError(f"output {output['name']} is {have}, not {want}")


def _worst(errors):
    entry = max(errors, key=lambda e: e["toleranceNeeded"] / max(e["toleranceAllowed"], 1e-300))
    return (
        f"output {entry['output']} needs a tolerance of {entry['toleranceNeeded']:.3g} at element "
        f"{entry['worstIndex']}, allowed is {entry['toleranceAllowed']:.3g}"
    )
