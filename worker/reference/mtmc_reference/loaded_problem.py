# SPDX-License-Identifier: Apache-2.0
"""One problem on one device: traced, inspected, prepared, compared and timed."""

import contextlib
import functools
import platform

import torch

from . import cost, distribution, share, workload
from .baseline import Baselines
from .compare import error
from .comparison import Comparison
from .deadline import deadline, parse_duration
from .distribution import DISTRIBUTIONS
from .effort import Effort
from .execution import Execution, state_tensors
from .failure import Dropped, ProblemFailure
from .fixed import find_fixed
from .flaws import FlawFinder, distribution_keys
from .graph_facts import draws_random, may_use_tf32
from .idle import IdleFinder
from .judge import Judge
from .memory_budget import MemoryBudget
from .oracle import PRECISIONS, kernelbench_tolerance
from .parameters import States
from .peril import Peril
from .precision import Arithmetic
from .prepared import PreparedWorkloads
from .probes import PROBES, needed_tolerances
from .problem import ProblemFile
from .program_numbers import ProgramKeys
from .shared_states import SharedStates
from .tensor_type import data_type
from .trace import trace

_DEFAULT_PRECISION = "PRECISION_KERNELBENCH"
# Those in which an honest program has the exponents of FP32.
_WIDE_PRECISIONS = ("PRECISION_STRICT", "PRECISION_KERNELBENCH")
# Workload whose outputs are replayed against the public one.
_REPLAYED = workload.Key(1)
# Part of the memory that all states may take where they are remembered.
_KEPT_STATES_RATIO = 0.05
# Part of the memory that outputs kept for a repeated comparison may take.
_REPEAT_RATIO = 0.1
# What the runner has of the inputs of a workload: those that it executes on, two kept
# sets, a fresh one, and intermediate results as large; and of the outputs: its own,
# the shared ones and intermediate results.
_RUNNER_INPUTS, _RUNNER_OUTPUTS = 5, 3
# What is drawn and run here in passing, the inputs and outputs of a baseline and the
# outputs of the last comparison included.
_PASSING_INPUTS, _PASSING_OUTPUTS = 2, 3
# Copies of inputs and outputs, in a layout of its own, that the fastest algorithm of a library
# may make. Where they do not fit, the library takes a slower one without a word.
_WORKSPACE_COPIES = 2


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
        self._describe(options.get("fixed", []))
        self._execution = Execution(
            self._problem, self._model, self._graph, self._seed, self._device, self._states
        )
        self._judge = Judge(
            self._execution,
            self._workloads,
            self._device,
            draws_random(self._graph),
            is_default_strict=self._device.type == "cpu" or not may_use_tf32(self._graph),
        )
        self._budget = self._make_budget()
        self._judge.peril = Peril(self._scratch, self._problem.source, self._device)
        self._workloads.direct = self._judge.direct
        self._prepared = PreparedWorkloads(self._judge, self, self._budget)
        self._baselines = Baselines(self._execution, self._device)
        self._keys = ProgramKeys(self._graph, self._workloads.fork)
        # Parameters, buffers and constants.
        self._shared_states = SharedStates(self._publish_state, self._may_keep_states)
        self._comparison = Comparison(
            self._graph["outputs"],
            self._execution.user_outputs,
            self._precision,
            self._may_keep_outputs,
            judges_nonfinite=bool(options.get("nonfinite", False)),
        )

    def _trace(self, path, randomize_identity):
        """Imports the file, builds the model, draws the public inputs, makes the graph."""
        self._problem = ProblemFile(path)
        self._check_memory(workload.predict_bytes(self._problem), "inputs")
        self._model = self._problem.build_model(self._seed, self._device, randomize_identity)
        self._workloads = workload.Workloads(
            self._problem, self._seed, self._device, self._precision in _WIDE_PRECISIONS
        )
        self._inputs = self._workloads.draw_public()
        self._graph, self._constants, self._dead_lines = trace(
            self._problem, self._model, self._inputs, self._seed
        )
        values = self._graph["inputs"] + self._graph["outputs"]
        need = sum(cost.type_bytes(value["type"]) for value in values)
        self._check_memory(need, "inputs, parameters and outputs")

    def _describe(self, fixed_names):
        """Finds what of the inputs and the model's state is free."""
        fixed = find_fixed(self._problem, self._model, fixed_names)
        self._workloads.describe(self._graph, self._inputs, fixed.positions)
        domain = self._workloads.domain
        self._states = States(self._model, self._graph, domain, fixed, self._workloads.fork)
        self._workloads.has_states = lambda: self._states.are_there

    def _make_budget(self):
        def size(values):
            return sum(cost.type_bytes(value["type"]) for value in values)

        def is_input(entry):
            return entry["kind"] == "KIND_USER_INPUT"

        inputs = size(filter(is_input, self._graph["inputs"]))
        state = size(self._graph["inputs"]) - inputs
        outputs = size(self._graph["outputs"])
        # A run in another state keeps the public one beside it.
        passing = _PASSING_INPUTS * inputs + _PASSING_OUTPUTS * outputs + state
        runner = _RUNNER_INPUTS * inputs + _RUNNER_OUTPUTS * outputs + 2 * state
        workspace = 0
        if self._device.type == "cuda" and may_use_tf32(self._graph):
            workspace = _WORKSPACE_COPIES * (inputs + outputs)
            self._judge.choice_bytes = workspace + outputs
        return MemoryBudget(self._device, runner + passing + workspace, passing)

    def release(self):
        """Frees what is shared with other processes."""
        self._prepared.release()
        self._shared_states.release()
        share.return_spare_memory(self._device)

    def inspect(self):
        """Runs the reference in every arithmetic; returns mtmc.v1.Inspection."""
        # The old tensors go before other ones come: two sets may not fit.
        inputs, self._inputs = self._inputs, None
        with self._workloads.held(workload.PUBLIC, inputs):
            expectation = self._prepared.expectation(workload.PUBLIC)
            strict = self._with_room(lambda: self._judge.strict_outputs(workload.PUBLIC, inputs))
            self._check_outputs(strict)
            self._check_deterministic(strict, expectation.outputs())
            strict = _shared(strict, expectation.outputs())
            positions = range(len(strict))
            bounds = [
                {
                    "precision": name,
                    "tolerances": [expectation.bounds.allowed(name, i) for i in positions],
                }
                for name in PRECISIONS[: PRECISIONS.index(self._precision) + 1]
            ]
            self._settle_states(inputs)
            dropped = self._dropped_distributions()
            replayed = self._with_room(lambda: self._replayed(inputs))
            passing = self._passing_probes(expectation, inputs, replayed)
            finder = FlawFinder(self._judge, self._graph, inputs, strict)
            flaws = ["dead_operation"] * bool(self._dead_lines)
            flaws += ["python_state"] * bool(self._execution.forgotten_state)
            flaws += finder.find(replayed, dropped)
            idle = self._idle_inputs(inputs, strict)
        del inputs
        self._check_told(expectation)
        everywhere = self._passing_everywhere(passing, expectation)
        flaws += [f"public_{name}" for name in passing if name not in everywhere]
        # A candidate may never ask for what was asked here.
        self._prepared.forget_costs()
        return {
            "graph": self._graph,
            "minimumBytes": cost.minimum_bytes(self._graph),
            "contractionFlops": cost.contraction_flops(self._graph),
            "passingProbes": everywhere,
            "bounds": bounds,
            "versions": self._versions(expectation.oracle),
            "droppedDistributions": dropped,
            "flaws": flaws,
            "idleInputs": idle,
            "fixedInputs": {**self._workloads.fixed_inputs(dropped), **self._states.fixed},
        }

    def prepare(self, seed_index, distribution, salt, keeps_last=False, numbers=()):
        """Shares the inputs of a workload, whose expected outputs are known by then. It goes around
        one of the `numbers` of a program that are no numbers of the problem."""
        key = self._keys.make(seed_index, distribution, salt, numbers)
        for replaced in self._keys.replaced(key):
            self._forget_key(replaced)
        there = self._shared_states.there(self._states.of(key))
        try:
            entry = self._prepared.prepare(key, keeps_last, there)
        except Dropped as dropped:
            return {"dropped": str(dropped)}
        # Only now it is known what the reference bears.
        state = self._states.of(key)
        shared = self._prepared.with_room(lambda: self._shared_states.find(state), entry)
        return {
            "inputs": entry.publication.messages + shared.messages,
            "prepared": entry.handle,
            "oracle": entry.expectation.oracle,
        }

    def compare(self, messages, handle, is_repeat):
        """Errors of every output against the expectation of a prepared workload."""
        entry = self._require_prepared(handle)

        def compared():
            # To map what another process has takes memory, too.
            with share.opened(messages, self._device) as outputs:
                expectation = self._prepared.expectation(entry.key)
                return self._comparison.compare(entry, expectation, outputs, is_repeat)

        effort = Effort(self._device)
        try:
            answer = self._prepared.with_room(compared, entry)
            # What is expected of a program's own inputs is found out for it alone, most of it here;
            # of others, an fp64 run of a large model is, once.
            if entry.key.salt or not entry.was_compared:
                self._judge.count(entry.key, effort.seconds)
            entry.was_compared = True
            if entry.key.around and answer["message"]:
                answer["message"] += f", where much is about {entry.key.around:g}, which its text has"
            return answer
        except (ValueError, OSError, KeyError) as problem:
            return {"isCorrect": False, "message": f"outputs cannot be read: {problem}"}

    def forget(self, handle):
        """Frees a workload that nobody asks for again."""
        self._prepared.forget(handle)

    def _forget_key(self, key):
        entry = self._prepared.entry(key)
        if entry is not None:
            self._prepared.forget(entry.handle)
        self._workloads.forget(key)
        state = self._states.forget(key)
        if state is not None:
            self._shared_states.forget(state)

    def make_room(self):
        """Gives memory to other processes; what is missing then is made again when asked for."""
        self._comparison.forget()
        self._shared_states.make_room()
        self._prepared.make_room()

    def time_baseline(self, baseline, **options):
        """`baseline.Times` on the inputs prepared last."""
        self._require_prepared(0)
        self._judge.leave_choice()
        return self._prepared.with_room(
            lambda: self._baselines.sample(baseline, self._prepared.last_inputs(), **options)
        )

    def _require_prepared(self, handle):
        entry = self._prepared.find(handle)
        if entry is None:
            raise ProblemFailure("NOT_PREPARED", "no workload is prepared; send Prepare first")
        return entry

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

    def _check_deterministic(self, again, first):
        for y, r, output in zip(again, first, self._graph["outputs"]):
            # Atomic additions in another order differ by less than this.
            allowed = kernelbench_tolerance(y.dtype) if y.is_floating_point() else 0.0
            if error(y, r).tolerance > allowed:
                raise ProblemFailure(
                    "NOT_DETERMINISTIC",
                    f"output {output['name']} differs between two runs on the same inputs and "
                    "seed; make forward depend on its inputs and torch's generator only",
                )

    def _check_told(self, public):
        """Raises ProblemFailure for an output that is nothing but rounding, on the public inputs
        and on all others: any answer would have to be accepted."""
        for index, output in enumerate(self._graph["outputs"]):
            if public.is_told(index) or self._is_told_anywhere(index):
                continue
            raise ProblemFailure(
                "ROUNDING_DECIDES",
                f"FP32 and fp64 agree on no more than half of output {output['name']}, whatever "
                "the inputs: no program can be told right from wrong; make the model less "
                "sensitive to rounding, for instance by eval(), a larger batch or double()",
            )

    def _is_told_anywhere(self, index):
        for key in distribution_keys(DISTRIBUTIONS):
            if key.distribution in distribution.UNTYPICAL:
                continue
            with contextlib.suppress(Dropped):
                if self._prepared.expectation(key).is_told(index):
                    return True
        return False

    def _replayed(self, inputs):
        """Strict outputs of another seed with the public parameters; None where there are no
        inputs."""
        if not workload.total_bytes(inputs):
            return None
        other = self._workloads.draw_own(_REPLAYED)
        return self._execution.run(other, Arithmetic.STRICT)

    def _settle_states(self, inputs):
        """Finds other parameters under which the reference is defined on public inputs."""
        self._states.settle(functools.partial(self._judge.is_defined_in, inputs))
        if not self._states.are_there:
            reason = "no parameter may change" if self._states.fixed else "there are no parameters"
            for name in distribution.OF_PARAMETERS:
                self._prepared.drop(name, reason)

    def _idle_inputs(self, inputs, outputs):
        fork = self._workloads.fork
        return IdleFinder(self._judge, self._graph, self._states, inputs, outputs, fork).find()

    def _passing_probes(self, expectation, inputs, replayed, names=PROBES):
        """Those of the probes that the class of the problem would accept."""
        count = self._execution.user_outputs
        replayed = replayed[:count] if replayed else None
        needed = needed_tolerances(expectation.reference[:count], inputs, replayed)
        return [
            name
            for name, values in needed.items()
            if name in names
            and all(
                t <= expectation.bounds.allowed(self._precision, index, t)
                for index, t in enumerate(values)
            )
        ]

    def _dropped_distributions(self):
        """Reason by name of the distributions on which the reference is not defined."""
        dropped = {}
        for key in sorted(distribution_keys(DISTRIBUTIONS), key=_peril_order):
            try:
                self._prepared.expectation(key)
            except Dropped as reason:
                dropped[key.distribution] = str(reason)
        return dropped

    def _passing_everywhere(self, passing, public):
        """Those of the probes that pass on every distribution, too."""
        for key in distribution_keys(DISTRIBUTIONS):
            if not passing:
                break
            if key.distribution in distribution.UNTYPICAL:
                continue
            with contextlib.suppress(Dropped):
                expectation = self._prepared.expectation(key)
                inputs = self._workloads.draw(key)
                passing = self._passing_probes(expectation, inputs, public.reference, passing)
        return passing

    def _with_room(self, function):
        return self._prepared.with_room(function, self._prepared.entry(workload.PUBLIC))

    def _publish(self, tensors, is_numbered=True):
        return share.publish(tensors, self._scratch, self._device, is_numbered)

    def publish_inputs(self, inputs, is_numbered):
        """Shares the forward arguments of a workload."""
        tensors = [(entry["name"], inputs[entry["argumentIndex"]]) for entry in self._user_inputs()]
        return self._publish(tensors, is_numbered)

    def damaged(self, publications):
        """Those whose content another process has changed."""
        return share.damaged(publications)

    def published_inputs(self, publication):
        """The forward arguments in a publication; None where it has not all of them."""
        tensors = publication.tensors()
        return self._workloads.filled_in(
            {entry["argumentIndex"]: tensors[entry["name"]] for entry in self._user_inputs()}
        )

    def _user_inputs(self):
        return [entry for entry in self._graph["inputs"] if entry["kind"] == "KIND_USER_INPUT"]

    def _publish_state(self, state):
        with self._execution.in_state(state):
            return self._publish(self._state_tensors())

    def _may_keep_states(self, size):
        return size < _KEPT_STATES_RATIO * self._budget.whole(self._prepared.byte_count())

    def _state_tensors(self):
        entries = self._graph["inputs"]
        constants = [e for e in entries if e["kind"] == "KIND_CONSTANT"]
        states = [e for e in entries if e["kind"] in ("KIND_PARAMETER", "KIND_BUFFER")]
        found = state_tensors(self._model, [e["target"] for e in states])
        return [(e["name"], found[e["target"]]) for e in states] + [
            (e["name"], self._constants[e["target"]].to(self._device)) for e in constants
        ]

    def _may_keep_outputs(self, size):
        return size < _REPEAT_RATIO * self._budget.whole(self._prepared.byte_count())

    def _versions(self, oracle):
        versions = {
            "torch": torch.__version__,
            "python": platform.python_version(),
            "oracle": oracle,
        }
        if self._device.type == "cpu":
            versions["threads"] = str(torch.get_num_threads())
        if self._device.type == "cuda":
            versions["cuda"] = torch.version.cuda or ""
            versions["cudnn"] = str(torch.backends.cudnn.version())
            versions["device"] = torch.cuda.get_device_name(self._device)
        return versions


def _peril_order(key):
    """Inputs within the range of the public ones come first."""
    return key.distribution not in distribution.WITHIN_RANGE


def _shared(tensors, others):
    """`tensors`, those that equal `others` replaced by them: outputs may take gigabytes."""
    pairs = zip(tensors, others)
    return [y if x.dtype == y.dtype and torch.equal(x, y) else x for x, y in pairs]
