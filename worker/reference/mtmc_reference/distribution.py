# SPDX-License-Identifier: Apache-2.0
"""What the inputs of a hidden workload look like: `mtmc.v1.Distribution`.

Each is made from what `get_inputs` draws. Shapes and types stay. A distribution changes
each input that it can in some ways, the mildest last: where the reference fails or is not
finite, a milder way is tried, and at last the input stays as it was drawn. A distribution
that changes no input any more is dropped by name.
"""

import torch

from . import extrema, float_ways, in_turn, mixed, mixed_inputs, redraw, special_values
from .domain import domain_of
from .graph_domain import Uses
from .graph_numbers import GraphNumbers
from .guards import is_met, near_guards
from .mask_ways import make_first_row_true
from .mixture import Mixture
from .pieces import changed

NONE = "DISTRIBUTION_UNSPECIFIED"
REDRAWN = "DISTRIBUTION_REDRAWN"
EXTREMES = "DISTRIBUTION_EXTREMES"
SPECIAL_ROWS = "DISTRIBUTION_SPECIAL_ROWS"
CENTERED = "DISTRIBUTION_CENTERED"
ROUNDED = "DISTRIBUTION_ROUNDED"
RAMPS = "DISTRIBUTION_RAMPS"
TIMES_3 = "DISTRIBUTION_TIMES_3"
TIMES_001 = "DISTRIBUTION_TIMES_001"
NEGATED = "DISTRIBUTION_NEGATED"
OFFSET = "DISTRIBUTION_OFFSET"
RANGE_ENDS = "DISTRIBUTION_RANGE_ENDS"
HEAVY_TAILED = "DISTRIBUTION_HEAVY_TAILED"
PARAMETERS_ZERO = "DISTRIBUTION_PARAMETERS_ZERO"
PARAMETERS_ONE = "DISTRIBUTION_PARAMETERS_ONE"
NONFINITE = "DISTRIBUTION_NONFINITE"
DIRECTED = "DISTRIBUTION_DIRECTED"
MIXED = "DISTRIBUTION_MIXED"
# In the order of the enumeration: its numbers are part of the seeds.
DISTRIBUTIONS = (
    TIMES_3,
    TIMES_001,
    NEGATED,
    OFFSET,
    HEAVY_TAILED,
    RAMPS,
    REDRAWN,
    EXTREMES,
    SPECIAL_ROWS,
    CENTERED,
    ROUNDED,
    RANGE_ENDS,
    PARAMETERS_ZERO,
    PARAMETERS_ONE,
    NONFINITE,
    DIRECTED,
    MIXED,
)
# Those whose inputs are as `get_inputs` draws them.
OF_PARAMETERS = (PARAMETERS_ZERO, PARAMETERS_ONE)
# Those whose equal elements may have a variance of zero, by which a model divides.
LEVEL = (SPECIAL_ROWS, *OF_PARAMETERS)
# Those that have delicate ways, after which outputs are small or what cancels is large, or
# rounding may decide.
DELICATE = (
    TIMES_001,
    NEGATED,
    OFFSET,
    HEAVY_TAILED,
    RAMPS,
    CENTERED,
)
# Those on which constant or undefined outputs say nothing about the problem.
UNTYPICAL = (*OF_PARAMETERS, NONFINITE, MIXED)
# Those that stay inside the range of what was drawn, as far as an element shows.
WITHIN_RANGE = (NONE, RAMPS, REDRAWN)
# Elements that are kept of a tensor of floats, and by which two draws are told apart.
_MOST_EXAMPLES, _SAMPLE = 1 << 20, 1 << 16


class Changer:
    """Knows how each distribution changes each input of one problem.

    `draws` are inputs from some draws of `get_inputs`, the first the public one; `uses` what
    the graph says of each position, `fixed` the positions that nobody may change, `bounds`
    numbers at which an operator changes its mind, `landmarks` by position where that is, `names`
    those of the graph,
    `numbers` the GraphNumbers, `sizes` those of guards that stand behind each position, `sides` the
    extrema.side of each, `mean_terms` of how many elements the graph takes means off. `may_be_small`
    tells that no honest program computes in a type as narrow as FP16. `seed_of(name)` decides what
    a mixed distribution mixes.
    """

    def __init__(
        self,
        draws,
        uses=None,
        fixed=(),
        bounds=(),
        landmarks=None,
        *,
        names=None,
        numbers=GraphNumbers(),
        sizes=None,
        sides=None,
        mean_terms=0,
        may_be_small=True,
        seed_of=lambda name: 0,
    ):
        public = draws[0]
        self._seed_of = seed_of
        self._may_be_small = may_be_small
        uses = uses or {}
        self._names = names or {}
        self._bounds = bounds
        self._landmarks = landmarks or {}
        self._numbers = numbers
        self._sizes = sizes or {}
        self._sides = sides or {}
        self._mean_terms = mean_terms
        self._uses = {index: uses.get(index, Uses()) for index in range(len(public))}
        self._labels = []
        # Columns of inputs before, of those that may come in turn.
        self._roles = 0
        # Positions of floats of two values.
        self._float_masks = set()
        # Ways to change an input by distribution and position.
        self._ways = {name: {} for name in DISTRIBUTIONS}
        # How many of those are delicate, the first ones.
        self._delicate = {}
        # Number of the way that ignores everything, by distribution and position.
        self._void = {}
        # mixed.Choice of each input, by position.
        self._mixed = {}
        # Position of an input before it of the same shape and type, by position.
        self._partners = {}
        self._is_floating = {
            index: isinstance(value, torch.Tensor) and value.is_floating_point()
            for index, value in enumerate(public)
        }
        self._is_alone = sum(isinstance(value, torch.Tensor) for value in public) == 1
        self.varies = {}
        for index, value in enumerate(public):
            if index in fixed or not isinstance(value, torch.Tensor) or not value.numel():
                continue
            seen = [inputs[index] for inputs in draws]
            first, *others = [_sample(example(x), _SAMPLE) for x in seen]
            self.varies[index] = any(not torch.equal(first, other) for other in others)
            if _is_free(value):
                self._find_partner(index, value, public)
                self._note_ordinary(index, value, seen)
            else:
                self._note_other(index, value, domain_of(seen, self._uses[index]))

    def ways(self, name):
        """Number of ways to change each input under a distribution, by position."""
        return {index: len(ways) for index, ways in self._ways_of(name).items()}

    def _ways_of(self, name):
        """Ways by position; those of a mixed distribution are chosen when it is asked for."""
        if name not in self._ways and is_mixed(name):
            mixture, seed = Mixture.of(name), self._seed_of(MIXED)
            plan = mixture.plan(self._seed_of, self._numbers)
            plan = plan and plan.called(_other)
            choices = self._mixed.items()
            found = {i: choice.ways(mixture.number, seed + i, plan) for i, choice in choices}
            self._ways[name] = {index: ways for index, ways in found.items() if ways}
        return self._ways.get(name, {})

    def forget(self, name):
        """Forgets the ways of a mixed distribution that nobody asks for again."""
        self._ways.pop(name, None)

    def is_delicate(self, name, levels):
        """Whether an input is changed in a way after which outputs may be nothing."""
        return any(level < self._delicate.get((name, i), 0) for i, level in levels.items())

    def changes(self, index):
        """Names of the distributions that can change an input."""
        return [name for name, ways in self._ways.items() if index in ways]

    def apply(self, name, inputs, levels, seed):
        """Changes `inputs` under distribution `name`, in place.

        REQUIRES: the tensors are dense. Those in `levels` change, each in the way of that
        number; `seed` decides what is random.
        """
        changed = set()
        for index, level in levels.items():
            tensor, ways = inputs[index], self._ways_of(name)[index]
            # The same tensor twice changes once.
            if tensor.data_ptr() not in changed:
                changed.add(tensor.data_ptr())
                generator = torch.Generator(tensor.device).manual_seed((seed + index) % 2**63)
                ways[level](tensor, generator, number=len(changed) - 1)
        for index, level in levels.items():
            if level == 0 and name in _BESIDE and index in self._partners:
                generator = torch.Generator(inputs[index].device).manual_seed((seed - index) % 2**63)
                _BESIDE[name](inputs[index], inputs[self._partners[index]], generator)
        if name == RAMPS:
            _sort_labels(inputs, self._labels)
        for index in levels:
            if self._uses[index].is_ordered and inputs[index].is_floating_point():
                inputs[index].copy_(inputs[index].sort().values)
        return inputs

    def joined(self, name, levels):
        """The levels, each one back where that way needs the company of other inputs."""
        ways = _CHANGES.get(name, ())
        return {
            index: level - 1 if self._is_joint(ways, name, index, level - 1) else level
            for index, level in levels.items()
        }

    def _is_joint(self, ways, name, index, level):
        # Whole numbers have ways of their own.
        has_these = len(self._ways[name][index]) == len(ways)
        return has_these and level >= 0 and ways[level] in special_values.JOINT

    def is_discrete(self, index):
        """Whether an input has whole numbers or booleans, or is a mask of floats."""
        return not self._is_floating[index] or index in self._float_masks

    def is_void(self, name, levels):
        """Whether a way is used that may leave nothing to be answered."""
        return any(self._void.get((name, index)) == level for index, level in levels.items())

    def refusal(self, inputs, levels):
        """Why the reference must not be asked about inputs; None if it may be."""
        for index in levels:
            if self._uses[index].is_probability:
                low, high = inputs[index].aminmax()
                # A NaN is not between them either.
                if not (low >= 0 and high <= 1):
                    return f"all elements of input {index} should be between 0 and 1"
        return None

    def _note_ordinary(self, index, value, seen):
        may_be_small = self._may_be_small and value.dtype != torch.float16
        for name, ways in _CHANGES.items():
            if name == DIRECTED and (self._uses[index].is_probability or not value.dim()):
                continue
            delicate = [way for way in ways if way in float_ways.DELICATE] if may_be_small else []
            if not may_be_small:
                ways = tuple(way for way in ways if way not in float_ways.DELICATE)
            bold = self._bold_ways(name, index, value.dtype) if may_be_small else ()
            if name == TIMES_001 and self._may_be_small and is_met(self._numbers.guards, value.dtype):
                bold = (near_guards(self._numbers.guards, self._numbers.sizes),)
            ways = (*bold, *ways)
            self._delicate[name, index] = len(bold) + len(delicate)
            ways = with_landmarks(name, ways, self._landmarks.get(index, ()))
            self._ways[name][index] = [_ordinary(way, self._bounds) for way in ways]
        found = self._sizes.get(index, ())
        self._note_mixed(index, *mixed_inputs.of_floats(value, may_be_small, self._is_alone, found))
        if is_constant(value) and not self.varies[index]:
            domain = domain_of(seen, self._uses[index])
            self._note(EXTREMES, index, redraw.extreme_ways(value, domain))

    def _find_partner(self, index, value, public):
        if not self._may_be_small or value.dtype == torch.float16:
            return
        for other in self._uses:
            if other >= index:
                return
            before = public[other]
            is_like = self._is_floating[other] and before.shape == value.shape
            if is_like and before.dtype == value.dtype and before is not value:
                self._partners[index] = other
                return

    def _bold_ways(self, name, index, dtype):
        """What this graph asks for, before what any graph does."""
        if name in _BESIDE and index in self._partners:
            # After it, `apply` brings the input beside its partner.
            return _CHANGES[name][:1]
        if name in _SIDES and self._sides.get(index):
            return extrema.far(_SIDES[name] * self._sides[index], dtype)
        if name == OFFSET and self._mean_terms and dtype.itemsize > 2:
            # Of several that are added, all of the sum are on the grid.
            return float_ways.shifts_before_means(self._mean_terms * (1 if self._is_alone else 2))
        return ()

    def _note_other(self, index, value, domain):
        self._note(REDRAWN, index, redraw.redrawn_ways(value, domain))
        self._note(EXTREMES, index, redraw.extreme_ways(value, domain))
        self._note(CENTERED, index, redraw.signed_ways(value, domain))
        equal = redraw.equal_ways(value, domain)
        ignored = redraw.ignoring_ways(value, domain)
        self._note(RANGE_ENDS, index, [*ignored, *equal])
        if ignored:
            self._void[RANGE_ENDS, index] = 0
        if value.dtype == torch.bool:
            self._note(SPECIAL_ROWS, index, [make_first_row_true])
        found = self._sizes.get(index, ())
        found = mixed_inputs.of_others(value, domain, self._may_be_small, self._is_alone, found)
        self._note_mixed(index, *found, turns=mixed_inputs.turns(value, domain, self._roles))
        self._roles += in_turn.roles(value)
        if value.is_floating_point():
            if domain.values is not None and len(domain.values) == 2:
                self._float_masks.add(index)
            if not self._uses[index].is_restricted:
                self._ways[NONFINITE][index] = [
                    _ordinary(special_values.make_nonfinite, self._bounds)
                ]
            if value.dim() == 1:
                self._labels.append(index)

    def _note(self, name, index, ways):
        if ways:
            self._ways[name][index] = [_other(way) for way in ways]

    def _note_mixed(self, index, groups, lines=(), mild=(), kind="", turns=None):
        """An input goes through ways of its own and of other distributions, of which it takes the
        mildest where the reference refuses those."""
        tables = [self._ways[name].get(index) for name in _MIXABLE]
        tables = [ways for ways in tables if ways]
        bold = [(1, way) for ways in tables for way in ways[:-1] or ways]
        groups = [*map(_asked, groups), *[bold] * min(len(bold), _OF_TABLES)]
        if groups:
            mild = [*_asked(mild), *((_OF_TABLES / len(tables), ways[-1]) for ways in tables)]
            # Floats of no kind stay where others go.
            is_named = kind or not self._is_floating[index]
            name = self._names.get(index, "") if is_named else ""
            self._mixed[index] = mixed.Choice(groups, _asked(lines), mild, kind, name, turns and _in_turn(turns))


def _in_turn(turns):
    return lambda number: _other(turns(number))


def _asked(ways):
    """The (weight, way), as they are called."""
    return [(weight, way if way is float_ways.stay else _other(way)) for weight, way in ways]


def is_mixed(name):
    """Whether it is the name of a mixed distribution, or of one of its workloads."""
    return name.startswith(MIXED)


def leaves_range(tensor, public):
    """Whether floats lie outside of the range of the public ones."""
    if not tensor.is_floating_point() or not tensor.numel():
        return False
    low, high = special_values.natural_range(public)
    least, most = (end.item() for end in tensor.aminmax())
    return not low <= least <= most <= high


def example(value):
    """What a Changer needs of a draw beside the public one: of a large tensor of floats, some
    elements from all over it."""
    if not isinstance(value, torch.Tensor) or not value.is_floating_point():
        return value
    # A view would keep all of it.
    return _sample(value, _MOST_EXAMPLES).clone()


def _sample(tensor, most):
    flat = tensor.reshape(-1)
    return flat[:: -(-flat.numel() // most) or 1]


def _ordinary(way, bounds):
    def change(tensor, generator, number):
        way(tensor, generator, number, bounds)

    return change


def _other(way):
    return lambda tensor, generator, number: changed(way, tensor, generator)


def with_landmarks(name, ways, landmarks):
    """The ways of a distribution, before the milder ones those that meet `landmarks`."""
    waves = [mark for mark in landmarks if mark.period]
    marks = [mark for mark in landmarks if not mark.period]
    if name == ROUNDED and marks:
        both = special_values.at_landmarks(marks, is_one_sided=False)
        return (both, special_values.at_landmarks(marks, is_one_sided=True), *ways)
    if name == TIMES_3 and waves:
        return (ways[0], special_values.by_periods(waves), *ways[1:])
    return ways


def is_constant(tensor):
    """Whether all elements are equal."""
    low, high = tensor.aminmax()
    return bool(low == high)


def _is_free(value):
    if not isinstance(value, torch.Tensor) or not value.is_floating_point() or not value.numel():
        return False
    # The first elements tell nearly always, at no cost.
    if _is_whole(value.reshape(-1)[:4096]) and _is_whole(value):
        return False
    return bool(torch.isfinite(value.sum(dtype=torch.float64)))


def _is_whole(tensor):
    return bool((tensor == tensor.round()).all())


def _sort_labels(inputs, labels):
    """Puts whole-numbered vectors in order: labels then go with the ramp, not against chance."""
    for index in labels:
        inputs[index].copy_(inputs[index].sort().values)


# How often an input takes a way of the other distributions, beside its own, and which these are.
_OF_TABLES = 3
_MIXABLE = tuple(
    name for name in DISTRIBUTIONS if name not in (*OF_PARAMETERS, NONFINITE, DIRECTED, MIXED)
)
# On which side of zero elements lie.
_SIDES = {NEGATED: -1, OFFSET: 1}
# Those in which all of an input may lie on one side.
ONE_SIDED = tuple(_SIDES)
# How an input is brought beside another one, in the first way of these.
_BESIDE = {RAMPS: special_values.bring_all_beside, CENTERED: special_values.bring_beside}
_CHANGES = {
    # The mildest of both are for what is defined next to the drawn range alone.
    TIMES_3: (float_ways.wide, *map(float_ways.times, (3.0, 1.8, 1.3))),
    TIMES_001: (float_ways.minute, float_ways.small, *map(float_ways.times, (0.01, 0.3, 0.9))),
    NEGATED: (float_ways.negate_far, float_ways.times(-1.0)),
    OFFSET: (float_ways.shift_far, float_ways.shift, float_ways.shift_to_one),
    HEAVY_TAILED: (float_ways.spike_over_decades, float_ways.spike, float_ways.spike_mildly),
    RAMPS: (float_ways.ramp,),
    SPECIAL_ROWS: (
        special_values.far_rows,
        special_values.special_rows,
        special_values.tied_rows_after_zeros,
        special_values.tied_rows,
        special_values.ordered_rows,
    ),
    CENTERED: (float_ways.center_or_shift, special_values.center),
    ROUNDED: (special_values.round_off, special_values.round_inside),
    RANGE_ENDS: (
        special_values.go_to_ends_and_bounds,
        special_values.go_to_ends,
        special_values.go_near_ends,
    ),
    NONFINITE: (special_values.make_nonfinite,),
    # `directed.Director` does it, boldly or mildly.
    DIRECTED: (float_ways.stay, float_ways.stay),
}
