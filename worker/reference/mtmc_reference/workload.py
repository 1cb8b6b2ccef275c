# SPDX-License-Identifier: Apache-2.0
"""Inputs of a problem: the public workload, hidden seeds, and distributions."""

import contextlib
import dataclasses
import hashlib
import math
import os

import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from . import distribution, extrema, tensor_type
from .centering import terms_of_means
from .failure import Dropped, ProblemFailure
from .graph_domain import GraphDomain
from .graph_numbers import GraphNumbers
from .guards import sizes_behind
from .landmarks import landmarks
from .levels import Levels
from .mixture import Mixture
from .problem import seed_everything

# Part of the free memory that a problem may take, the rest is for temporaries.
_USABLE_RATIO = 0.8
# Part of the free memory up to which drawn inputs are held for the next workload.
_HELD_RATIO = 0.05
# Directed workloads that are remembered.
_MOST_DIRECTED = 4
# Draws of `get_inputs`, beside the public one, that show what values an input has.
_EXAMPLES = 2


@dataclasses.dataclass(frozen=True)
class Key:
    """Which inputs of a problem: `mtmc.v1.Workload` and the salt of its seed."""

    seed_index: int = 0
    distribution: str = distribution.NONE
    # 0 for the workloads of this process, whose expectations are remembered.
    salt: int = 0
    # Of a mixed workload, the number of a program that its inputs go around, or 0.
    around: float = 0.0

    @property
    def is_public(self):
        return self == PUBLIC

    @property
    def recipe(self):
        """Name under which the ways of its inputs are known: each mixed workload has its own."""
        is_mixed = self.distribution == distribution.MIXED
        return self.mixture.name(self.distribution) if is_mixed else self.distribution

    @property
    def mixture(self):
        """Which mixed workload it is."""
        return Mixture(self.seed_index, self.around)

    @property
    def is_unchanged(self):
        """Whether the inputs are as `get_inputs` draws them."""
        return self.distribution == distribution.NONE


PUBLIC = Key()


class Workloads:
    """Draws the inputs of workloads on `device`.

    Every seed but the public one is made from random bytes of this process, which
    nothing outside it ever sees.
    """

    def __init__(self, problem, seed, device, may_be_small=True):
        self._problem = problem
        # Whether no program of the class computes in a type as narrow as FP16.
        self._may_be_small = may_be_small
        self._seed = seed
        self._device = device
        self._secret = os.urandom(32)
        # Form of the public inputs.
        self._form = None
        self._domain = GraphDomain()
        # Names of the tensors in the graph, by position.
        self._names = {}
        # Public values of the inputs that no workload changes, by position.
        self._fixed = {}
        # How each distribution changes each input, and which way is in use.
        self._changer = None
        self._levels = None
        # Levels of the keys that were drawn: what others learn later changes no draw.
        self._used = {}
        # Inputs that were drawn for the distributions, which all start from them.
        self._base = None
        # (key, inputs) that were drawn last, where they are small enough.
        self._held = None
        # Moves inputs: (key, inputs, indices, level, seed), set by whoever can run the model.
        self.direct = None
        # Directed inputs by index, on the host, by key and levels: a search on a device may end
        # elsewhere the next time.
        self._directed = {}
        # Whether the model has states, so that a mixed workload may have inputs as they are drawn.
        self.has_states = lambda: False
        # Inputs of a key that somebody keeps, or None.
        self.kept_elsewhere = lambda key: None

    def draw_public(self):
        """The public inputs; first of all calls."""
        inputs = draw(self._problem, self._seed, self._device)
        self._form = form(inputs)
        return inputs

    def describe(self, graph, inputs, fixed=()):
        """Tells what `graph` knows of the public `inputs`, and which positions are `fixed`."""
        self._domain = GraphDomain(graph)
        self._names = {
            entry["argumentIndex"]: entry["name"]
            for entry in graph["inputs"]
            if entry["kind"] == "KIND_USER_INPUT"
        }
        self._fixed = {
            index: inputs[index].clone()
            for index in fixed
            if index < len(inputs) and _is_tensor_form(self._form[index])
        }

    @property
    def domain(self):
        """GraphDomain of the graph that was described."""
        return self._domain

    def draw(self, key):
        """Forward arguments of `key`, tensors dense row-major; nobody may change them."""
        if self._held is None or self._held[0] != key:
            kept = self.kept_elsewhere(key)
            if kept is not None:
                return kept
            inputs = self.draw_own(key)
            if total_bytes(inputs) > _HELD_RATIO * free_bytes(self._device):
                return inputs
            self._held = (key, inputs)
        return self._held[1]

    def byte_count(self):
        """Bytes of the tensors of any workload."""
        return sum(math.prod(v[0]) * v[1].itemsize for v in self._form if _is_tensor_form(v))

    def filled_in(self, tensors):
        """Forward arguments with `tensors` by position; None where one is missing."""
        if any(_is_tensor_form(v) and i not in tensors for i, v in enumerate(self._form)):
            return None
        return [tensors.get(index, value) for index, value in enumerate(self._form)]

    def draw_own(self, key):
        """Fresh forward arguments of `key`, which the caller may change."""
        if key.is_public:
            return self._drawn(self._seed)
        if key.is_unchanged:
            return self._drawn(self._fork(key.salt, key.seed_index))
        levels = self._used.get(key) or self.levels(key.recipe)
        inputs = self._changed(key, levels)
        if not key.salt:
            self._used[key] = levels
        return inputs

    def draw_at(self, key, levels):
        """Fresh forward arguments of `key` with other `levels` than those in use."""
        return self._changed(key, levels)

    def levels(self, name):
        """Which way each input is changed by a distribution, by position."""
        return self._known().of(name)

    def is_delicate(self, name, levels):
        """Whether a distribution may leave nothing of the outputs but zeros or rounding."""
        self._known()
        return self._changer.is_delicate(name, levels)

    def discrete(self, levels):
        """Those of the levels that change whole numbers or booleans."""
        self._known()
        return {i: level for i, level in levels.items() if self._changer.is_discrete(i)}

    def is_void(self, name, levels):
        """Whether a distribution may leave nothing to be answered."""
        self._known()
        return self._changer.is_void(name, levels)

    def soften(self, key, reason, accepts):
        """Goes on with a milder form of the distribution of `key`, which the reference refuses;
        false where there is none.

        `accepts(levels)` asks the reference about other levels.
        """
        self._held = None
        self._used.pop(key, None)
        was_changed = bool(self.levels(key.recipe))
        is_changed = self._known().soften(key.recipe, reason, accepts)
        return is_changed or was_changed and self._may_stay(key)

    def forget(self, key):
        """Forgets what was learned of the inputs of a key that nobody asks for again."""
        self._known().forget(key.recipe)

    def _may_stay(self, key):
        """Whether a workload is another one though its inputs are as they are drawn."""
        is_mixed = key.distribution == distribution.MIXED
        return key.distribution in distribution.OF_PARAMETERS or is_mixed and self.has_states()

    def fixed_inputs(self, dropped):
        """Reason by name, of the inputs that are the same in every workload but those of the
        distributions in `dropped`."""
        levels = self._known()
        found = {self._names[index]: "fixed by the user" for index in self._fixed}
        for index, varies in self._changer.varies.items():
            names = self._changer.changes(index)
            names = [name for name in names if name.partition(" ")[0] not in dropped]
            names = [name for name in names if name != distribution.NONFINITE]
            if not varies and not any(index in levels.of(name) for name in names):
                reason = levels.reasons.get(index, "an operator may define no other value")
                found[self._names.get(index, str(index))] = reason
        return found

    def leave_range(self, inputs):
        """Whether an input has values outside of those of the public one."""
        public = self.draw_own(PUBLIC)
        return any(
            isinstance(value, torch.Tensor) and distribution.leaves_range(value, other)
            for value, other in zip(inputs, public)
        )

    def _known(self):
        """Levels, once the inputs have been looked at."""
        if self._levels is None:
            public = self.draw(PUBLIC)
            draws = [public]
            if any(_is_tensor_form(value) for value in self._form):
                for number in range(_EXAMPLES):
                    drawn = self._drawn(self._fork("example", number))
                    draws.append([distribution.example(value) for value in drawn])
            uses = {index: self._domain.uses(name) for index, name in self._names.items()}
            bounds = self._domain.bounds()
            marks = {i: landmarks(self._domain, name) for i, name in self._names.items()}
            names, behind = self._names.items(), sizes_behind(self._domain)
            self._changer = distribution.Changer(
                draws,
                uses,
                self._fixed,
                bounds,
                marks,
                names=dict(names),
                numbers=GraphNumbers.of(self._domain),
                sizes={index: behind[name] for index, name in names},
                sides={index: extrema.side(self._domain, name) for index, name in names},
                mean_terms=terms_of_means(self._domain),
                may_be_small=self._may_be_small,
                seed_of=self.fork,
            )
            self._levels = Levels(self._changer)
        return self._levels

    def _changed(self, key, levels):
        if not levels and not self._may_stay(key):
            raise Dropped("no input to change")
        inputs = self._distribution_base()
        seed = self._fork(key.salt, key.seed_index, key.distribution)
        self._changer.apply(key.recipe, inputs, levels, seed)
        if key.distribution == distribution.DIRECTED:
            self._direct(key, inputs, levels, seed)
        reason = self._changer.refusal(inputs, levels)
        if reason:
            raise Dropped(reason)
        return inputs

    def _direct(self, key, inputs, levels, seed):
        """Gives the inputs in `levels` directed elements, the same at each call."""
        search = (key, *sorted(levels.items()))
        if search not in self._directed:
            self.direct(key, inputs, list(levels), max(levels.values()), seed)
            while len(self._directed) >= _MOST_DIRECTED:
                del self._directed[next(iter(self._directed))]
            self._directed[search] = {index: inputs[index].cpu().clone() for index in levels}
        for index, tensor in self._directed[search].items():
            inputs[index].copy_(tensor)

    @contextlib.contextmanager
    def held(self, key, inputs):
        """Draws of `key` at the start of the block are these inputs."""
        self._held = (key, inputs)
        try:
            yield
        finally:
            self._held = None

    def _distribution_base(self):
        """Fresh inputs for a distribution, drawn or copied."""
        base = self._base
        if base is None:
            base = self._drawn(self._fork("base"))
            if total_bytes(base) > _HELD_RATIO * free_bytes(self._device):
                return [_owned(value) for value in base]
            self._base = base
        return [value.clone() if isinstance(value, torch.Tensor) else value for value in base]

    def _drawn(self, seed):
        inputs = draw(self._problem, seed, self._device)
        require_same_form(inputs, self._form)
        for index, value in self._fixed.items():
            inputs[index] = value.clone()
        return inputs

    def fork(self, *words):
        """A seed that only this process knows, another for other words."""
        return self._fork("other", *words)

    def _fork(self, *words):
        text = ":".join(str(word) for word in (self._seed, *words))
        digest = hashlib.sha256(self._secret + text.encode()).digest()
        return int.from_bytes(digest[:7], "little")


def draw(problem, seed, device):
    """What `get_inputs` returns after `seed`, on `device`, tensors dense row-major.

    On CUDA the random numbers are drawn on the device, because drawing billions
    of them on the host takes a minute. They thus differ from those of a CPU.
    """
    inputs = None
    if device.type == "cuda":
        with contextlib.suppress(ProblemFailure), torch.device(device):
            seed_everything(seed)
            inputs = problem.draw()
    if inputs is None:
        seed_everything(seed)
        inputs = problem.draw()
    return [_placed(value, index, device) for index, value in enumerate(inputs)]


def predict_bytes(problem):
    """Bytes that `get_inputs` would allocate; 0 where only a real call can tell."""
    try:
        with FakeTensorMode():
            return total_bytes(problem.draw())
    except ProblemFailure:
        return 0


def total_bytes(values):
    """Bytes of the tensors among `values`."""
    return sum(tensor_type.byte_count(value) for value in values if isinstance(value, torch.Tensor))


def form(inputs):
    """Shapes and element types of the tensors, and the other arguments as they are."""
    return [
        (tuple(value.shape), value.dtype) if isinstance(value, torch.Tensor) else value
        for value in inputs
    ]


def _is_tensor_form(value):
    return isinstance(value, tuple)


def require_same_form(inputs, expected):
    """Raises unless `form(inputs)` is that of the workload that was traced."""
    if form(inputs) != expected:
        raise ProblemFailure(
            "INPUTS_WRONG_TYPE",
            "get_inputs returns other shapes, types or scalars for another seed; make them fixed",
        )


def free_bytes(device):
    """Memory that a new allocation on `device` can use."""
    if device.type == "cuda":
        reserved, allocated = _allocator_bytes(device)
        return torch.cuda.mem_get_info(device)[0] + reserved - allocated
    with open("/proc/meminfo", encoding="ascii") as lines:
        for line in lines:
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def reserved_bytes(device):
    """What PyTorch's allocator holds of a CUDA device, in use or not."""
    return _allocator_bytes(device)[0]


def _allocator_bytes(device):
    """(reserved, allocated) bytes of PyTorch's allocator on a CUDA device."""
    # `memory_reserved` and its like sort all statistics first, which takes ten times as long.
    statistics = torch.cuda.memory_stats_as_nested_dict(device)
    if not statistics:
        return 0, 0
    return tuple(statistics[f"{name}_bytes"]["all"]["current"] for name in ("reserved", "allocated"))


def wait_for_device(device=None):
    """Returns when nothing runs on the CUDA device, by default the current one; RuntimeError
    when an error has ended the context."""
    if torch.cuda.is_initialized():
        torch.cuda.synchronize(device)


def return_cached_memory():
    """Gives the device memory that PyTorch keeps for later to other processes."""
    if torch.cuda.is_initialized():
        torch.cuda.empty_cache()


def require_memory(need, limit, device, what):
    """Raises INPUTS_TOO_LARGE when `need` bytes exceed `limit` (0: none) or free memory."""
    usable = int(free_bytes(device) * _USABLE_RATIO)
    most = min(limit, usable) if limit else usable
    if need > most:
        raise ProblemFailure(
            "INPUTS_TOO_LARGE",
            f"{what} take {need / 1e9:.1f} GB and at most {most / 1e9:.1f} GB may be used; "
            "make the sizes of the problem smaller",
        )


def _owned(value):
    """The value, as a copy where it is a tensor whose elements others hold, too.

    What `get_inputs` returns may be the user's own tensor, or a part of it.
    """
    if not isinstance(value, torch.Tensor) or _is_sole_owner(value):
        return value
    return value.clone()


def _is_sole_owner(tensor):
    count = getattr(torch._C, "_storage_Use_Count", None)
    # Besides the tensor, the storage that is asked holds its elements.
    return count is not None and count(tensor.untyped_storage()._cdata) == 2


def _placed(value, index, device):
    if isinstance(value, torch.Tensor):
        if not tensor_type.is_supported(value.dtype):
            raise ProblemFailure(
                "INPUTS_WRONG_TYPE",
                f"input {index} is a tensor of {value.dtype}; use a real type such as float32",
            )
        return value.detach().to(device).contiguous()
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise ProblemFailure(
        "INPUTS_WRONG_TYPE",
        f"input {index} is a {type(value).__name__}; return tensors and plain numbers",
    )
