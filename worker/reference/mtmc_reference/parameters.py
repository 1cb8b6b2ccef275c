# SPDX-License-Identifier: Apache-2.0
"""States of a model: its parameters and persistent buffers, as they are and otherwise.

A program must not know the numbers that the constructor drew: a checkpoint brings others.
So each workload has one of few states,

    public   as the constructor made them
    first,   other numbers of the same type, shape, scale, sign and structure; workloads
    second,  take them in turn; of the first some rows and stretches are zero or minute, as
    third    pruning leaves them, of the second some elements far out, as training moves them;
             the third, of seeds and directed inputs alone, has neither: nothing hides the rest
    zero     all 0; where the reference bears that for some tensors alone, the others are minute
    one      all 1
    lone     zero or one, but for one element of each tensor
    mixed    each tensor in a way of its own, most or some of them as they are; another state for
             each mixed workload

A workload of a distribution may add its own values of single numbers, masks and what
exponentials take (`sweeps`), where the reference is defined with them. Those with a number from
`AS_MADE` on have the public state, whose simple values, as a bias of 0, hide what a program does
with other inputs, or the lone one.

A tensor that is not in `state_dict` belongs to the code and stays. So does one that the
user fixes, and at last one under whose other values the reference is not defined.
"""

import collections
import contextlib
import dataclasses
import math
import time

import torch

from . import distribution, drawing, float_ways, mixed, state_ways, sweeps
from .copying import copies, copy_all
from .graph_numbers import GraphNumbers
from .guards import sizes_behind
from .kept_values import KeptValues
from .mixture import Mixture
from .own_values import SWEPT, OwnValues
from .pieces import changed
from .workload import total_bytes

PUBLIC, FIRST, SECOND, ZERO, ONE = "public", "first", "second", "zero", "one"
THIRD = "third"
# Before the number of the workload.
MIXED = "mixed"
LONE_ZERO, LONE_ONE = "zero but one", "one but one"
ORDINARY = (FIRST, SECOND, THIRD)
_OF_ONE_VALUE = {ZERO: 0, ONE: 1, LONE_ZERO: 0, LONE_ONE: 1}
# What a lone state is where the reference does not bear it.
_WITHOUT_LONE = {LONE_ZERO: ZERO, LONE_ONE: ONE}
# Numbers of the workloads of distributions from which on the model is as its constructor made it.
AS_MADE = 200
# Part of the tensors that go their own way in a mixed state, at most so many; how often the others
# are near what they were.
_MIXED_SHARE, _MOST_MIXED, _NEAR_SHARE = 0.8, 6, 0.3
# How often values of a workload are tried, milder the second time.
_TRIES = 2
# Between the name of a state and that of the distribution whose values are swept.
_AND, _MILDLY = " with ", ", mildly"

# How long tensors are looked for that must not be bold, or stay as they are.
_SECONDS, _BOLD_SECONDS = 10.0, 1.5
# Most tensors that are minute because the reference divides by them.
_MOST_DIVISORS = 4
# Bytes of a model's tensors up to which workloads have values of their own: each is one more
# state that is kept.
_MOST_SWEPT_BYTES = 64 << 20


def state_of(key):
    """Name of the state that the workload `key` has before anything is swept."""
    is_as_made = key.seed_index >= AS_MADE and not key.is_unchanged
    if key.distribution == distribution.PARAMETERS_ZERO:
        return LONE_ZERO if is_as_made else ZERO
    if key.distribution == distribution.PARAMETERS_ONE:
        return LONE_ONE if is_as_made else ONE
    if key.distribution == distribution.MIXED:
        return key.mixture.name(MIXED)
    if key.is_public or is_as_made:
        return PUBLIC
    if key.distribution == distribution.DIRECTED:
        return THIRD
    turn = key.seed_index + key.salt
    return (THIRD, SECOND, FIRST)[turn % 3] if key.is_unchanged else (FIRST, SECOND)[turn % 2]


class States:
    """The states of one model.

    `graph` is its traced graph, `domain` the GraphDomain of it, `seed_of(word)` a number that
    nobody knows. Tensors by target are those that the graph takes.
    """

    def __init__(self, model, graph, domain, fixed, seed_of):
        self._seed_of = seed_of
        persistent = model.state_dict(keep_vars=True)
        # Graph name by target, of what a state may change.
        self.names = {}
        self._tensors = {}
        self._uses = {}
        # state_ways.Ways to draw a tensor, by target.
        self._ways = {}
        # Reason by graph name, of what no state changes.
        self.fixed = {}
        # Number of the way in which a tensor is drawn, by state and target, where it is not
        # the first.
        self._levels = {}
        # Targets of those that are minute in the state of zeros, whose others are near then.
        self._divisors = []
        place = seed_of("pruned") / 2.0**56
        for entry in graph["inputs"]:
            if entry["kind"] not in ("KIND_PARAMETER", "KIND_BUFFER"):
                continue
            target, name = entry["target"], entry["name"]
            if target not in persistent:
                self.fixed[name] = "not in state_dict"
            elif target in fixed.targets:
                self.fixed[name] = "fixed by the user"
            elif persistent[target].numel():
                self.names[target] = name
                self._tensors[target] = persistent[target]
                self._uses[target] = domain.uses(name)
                self._ways[target] = state_ways.of(persistent[target], self._uses[target], place)
        for target in [target for target, ways in self._ways.items() if not ways.near]:
            self._keep(target, "an operator may define no other value")
        # Whether workloads have values of their own: each is one more state that is kept.
        self._has_own = total_bytes(self._tensors.values()) <= _MOST_SWEPT_BYTES
        self._own = OwnValues(self._tensors, self.names, self._uses, domain, seed_of, self._has_own)
        # GraphNumbers, and sizes of guards by the graph name of what they stand behind.
        self._numbers, self._sizes = GraphNumbers.of(domain), sizes_behind(domain)
        # Ways of each tensor by mixed state, and those states of which it is known what the
        # reference bears.
        self._mixed, self._settled = {}, set()
        # Values that were drawn, without what is swept.
        self._kept = KeptValues(ORDINARY)
        # How many times milder a state is than at first, as the reference bears it.
        self._calm = collections.Counter()

    def of(self, key):
        """Name of the state that the workload `key` has."""
        if not self._tensors:
            return PUBLIC
        state = state_of(key)
        if _is_mixed(state) and not self._has_own:
            return ORDINARY[key.seed_index % 2]
        if state in _WITHOUT_LONE:
            return _WITHOUT_LONE[state] if self._calm[state] else state
        # Of a salt only the state whose values were tried.
        is_known = state == state_of(dataclasses.replace(key, salt=0))
        if state not in ORDINARY or not is_known or key.distribution not in SWEPT:
            return state
        swept = f"{state}{_AND}{key.distribution}"
        if not self._own or self._calm[swept] == _TRIES:
            return state
        return swept + _MILDLY * self._calm[swept]

    def is_special(self, key):
        """Whether the workload `key` has values that only a few have."""
        state = self.of(key)
        return _AND in state or state in _WITHOUT_LONE

    def with_masks_of(self, key):
        """Name of the public state but for masks, which are those of the workload `key`; None where
        it has none of its own."""
        state = self.of(key)
        name, _, turn = state.partition(_AND)
        turns = turn.removesuffix(_MILDLY)
        masks = (t for t, tensor in self._tensors.items() if tensor.dtype == torch.bool)
        if name not in ORDINARY or not any(self._own.of(t, turns) for t in masks):
            return None
        return f"{PUBLIC}{_AND}{turn}"

    def calm(self, key):
        """Goes on with milder ones, at last with none; false where there are none."""
        if not self.is_special(key):
            return False
        self._calm[self.of(key).removesuffix(_MILDLY)] += 1
        return True

    @property
    def are_there(self):
        """Whether a state changes anything."""
        return bool(self._tensors)

    def tensor(self, target):
        """The model's own tensor; REQUIRES: `target` is in `names`."""
        return self._tensors[target]

    @contextlib.contextmanager
    def applied(self, state):
        """In the block, the model is in that state."""
        if state in (None, PUBLIC) or not self._tensors:
            yield
            return
        # The same elements under two names change once.
        tensors = [tensor for _, tensor in self._each_once()]
        saved = copies(tensors)
        try:
            name, _, turn = state.removesuffix(_MILDLY).partition(_AND)
            if name != PUBLIC:
                self._enter(name, tensors)
            if turn:
                masks_alone = name == PUBLIC
                self._sweep(turn, is_mild=state.endswith(_MILDLY), masks_alone=masks_alone)
            yield
        finally:
            copy_all(tensors, saved)

    def _enter(self, state, tensors):
        """Draws what was not drawn before: with hundreds of tensors that takes longer than the
        model's run, and which of them change, changes while states are settled."""
        fresh, known, values = [], [], []
        for (target, _), tensor in zip(self._each_once(), tensors):
            value = self._kept.of(state, target, self._origin(state, target))
            if value is not None:
                known.append(tensor)
                values.append(value)
            else:
                fresh.append((target, tensor))
        copy_all(known, values)
        self._write(state, fresh)
        drawn = [tensor for _, tensor in fresh]
        if drawn and self._kept.make_room(state, total_bytes(tensors)):
            for (target, _), value in zip(fresh, copies(drawn)):
                self._kept.keep(state, target, self._origin(state, target), value)

    def _origin(self, state, target):
        """What decides how a state draws a tensor."""
        return self._level(state, target), self._level(FIRST, target), tuple(self._divisors)

    def settle(self, accepts):
        """Finds for each tensor a way to change it that the reference accepts.

        `accepts(state, is_steady)` runs it in a state, and tells where it `is_steady` whether
        rounding decides little there; the last resort is that a tensor stays.
        """
        self._settle(FIRST, accepts)
        count = len(self._tensors)
        self._settle(SECOND, accepts)
        self._settle(THIRD, accepts)
        if len(self._tensors) < count:
            self._settle(FIRST, accepts)
        self._divisors = self._find_divisors(accepts)
        if self._divisors and not self._are_accepted(ZERO, self._tensors, accepts):
            self._divisors = []

    def settle_mixed(self, key, accepts, holds):
        """The same for the state of a mixed workload, once. `holds()` tells first whether the reference
        accepts it with its own inputs: a model may bear them that bears no others."""
        state = self.of(key)
        if not _is_mixed(state) or state in self._settled:
            return
        self._settled.add(state)
        self._mixed_ways(state)
        if not holds():
            self._settle(state, accepts)

    def forget(self, key):
        """Forgets the state of a workload that nobody asks for again; its name, or None where
        other workloads have it, too."""
        state = self.of(key)
        if not _is_mixed(state):
            return None
        self._mixed.pop(state, None)
        self._settled.discard(state)
        self._kept.forget(state)
        for entry in [entry for entry in self._levels if entry[0] == state]:
            del self._levels[entry]
        return state

    def _mixed_ways(self, state):
        """Ways of each tensor in a mixed state."""
        if state not in self._mixed:
            generator = torch.Generator().manual_seed(self._seed_of(f"ways {state}"))
            mixture, plan = Mixture.of(state), self._plan(state)
            share = 1.0
            if not (plan and (plan.is_for_all or plan.named is not None)):
                share = 1.0 if mixture.around else _MIXED_SHARE
                share = min(share, _MOST_MIXED / len(self._tensors))
            are_near = drawing.uniform(generator, 0, 1) < _NEAR_SHARE
            self._mixed[state] = found = {}
            for target, tensor in self._tensors.items():
                choice = self._choice(target, tensor)
                own = choice.ways(mixture.number, self._seed_of(f"mixed {target}"), plan)
                if not own or drawing.uniform(generator, 0, 1) > share:
                    own = self._ways[target].near[:1] if are_near else []
                found[target] = [*own, float_ways.stay]
        return self._mixed[state]

    def _choice(self, target, tensor):
        name, ways = self.names[target], self._ways[target]
        swept, exact = self._own.swept(target), self._own.exact(target)
        return mixed.state_choice(ways, swept, tensor, self._uses[target], self._sizes[name], exact, name)

    def _plan(self, state):
        """The Plan of a mixed state; None where its tensors go apart."""
        return Mixture.of(state).plan(self._seed_of, self._numbers)

    def _find_divisors(self, accepts):
        """Targets of the tensors of which one alone may not be zero; none where the reference
        bears zeros everywhere, or has too many of them."""
        found, others = [], list(self._tensors)
        start = time.monotonic()
        while others and not self._are_accepted(ZERO, others, accepts):
            if len(found) == _MOST_DIVISORS or time.monotonic() - start > _BOLD_SECONDS:
                return []
            target = self._culprit(ZERO, others, accepts)
            if not self._tensors[target].is_floating_point():
                return []
            found.append(target)
            others.remove(target)
        return found

    def _settle(self, state, accepts):
        start, questions = time.monotonic(), 1
        while self._tensors and not self._are_accepted(state, self._tensors, accepts):
            # Where time is short, all go on together; first those that are bold.
            bold = [target for target in self._tensors if self._is_bold(state, target)]
            if _is_mixed(state) and not bold:
                return
            passed = time.monotonic() - start
            search = math.log2(len(self._tensors)) * passed / questions
            if passed > (_BOLD_SECONDS if bold else _SECONDS):
                targets = bold or list(self._tensors)
            elif bold and search > _BOLD_SECONDS:
                # What a layer does not bear of its weights, others of its kind do not either.
                targets = self._of_largest_kind(bold)
            else:
                targets = [self._culprit(state, list(self._tensors), accepts)]
                questions += math.ceil(math.log2(len(self._tensors)))
            questions += 1
            for target in targets:
                self._soften(state, target)

    def _of_largest_kind(self, targets):
        """Those of as many dimensions as the most elements have."""
        sizes = collections.Counter()
        for target in targets:
            sizes[self._tensors[target].dim()] += self._tensors[target].numel()
        most = max(sizes, key=sizes.get)
        return [target for target in targets if self._tensors[target].dim() == most]

    def _level(self, state, target):
        return self._levels.get((state, target), 0)

    def _is_bold(self, state, target):
        if _is_mixed(state):
            return self._level(state, target) + 1 < len(self._mixed_ways(state)[target])
        return self._ways[target].is_bold(ORDINARY.index(state), self._level(state, target))

    def _are_accepted(self, state, targets, accepts):
        """Whether the reference is defined where only these tensors are other ones."""
        everything = self._tensors
        self._tensors = {target: everything[target] for target in targets}
        try:
            is_fit = state in ORDINARY or _is_mixed(state)
            is_bold = is_fit and any(self._is_bold(state, t) for t in targets)
            return accepts(state, is_bold or bool(self._divisors))
        finally:
            self._tensors = everything

    def _culprit(self, state, targets, accepts):
        """A tensor that the reference refuses together with those before it, and not these
        alone."""
        accepted, refused = 0, len(targets)
        while refused - accepted > 1:
            middle = (accepted + refused) // 2
            if self._are_accepted(state, targets[:middle], accepts):
                accepted = middle
            else:
                refused = middle
        return targets[refused - 1]

    def _soften(self, state, target):
        level = self._level(state, target) + 1
        if level < len(self._own_ways(state, target)):
            self._levels[state, target] = level
        else:
            self._keep(target, "the reference is not defined with other values")

    def _own_ways(self, state, target):
        """Ways of a tensor in a state that is mixed or ordinary."""
        if _is_mixed(state):
            return self._mixed_ways(state)[target]
        return self._ways[target].in_state(ORDINARY.index(state))

    def _keep(self, target, reason):
        del self._tensors[target]
        self.fixed[self.names.pop(target)] = reason

    @torch.no_grad()
    def _write(self, state, targets):
        for target, tensor in targets:
            way = self._way(state, target)
            if way is not None:
                changed(way, tensor, self._generator(f"state {state} {target}", tensor))
            else:
                state_ways.fill(tensor, _OF_ONE_VALUE[state], self._uses[target])

    @torch.no_grad()
    def _sweep(self, turn, is_mild, masks_alone):
        for target, tensor in self._each_once():
            if masks_alone and tensor.dtype != torch.bool:
                continue
            sweep = self._own.of(target, turn)
            if sweep is not None:
                sweep(tensor, self._generator(f"sweep {turn} {target}", tensor), is_mild)

    def _each_once(self):
        """(target, tensor) of all that a state changes; tensors with two names under the first."""
        found = {}
        for target, tensor in self._tensors.items():
            found.setdefault(tensor.data_ptr(), (target, tensor))
        return found.values()

    def _generator(self, words, tensor):
        return torch.Generator(tensor.device).manual_seed(self._seed_of(words))

    def _way(self, state, target):
        """The way in which a state changes a tensor; None where it has one value."""
        ways = self._ways[target]
        if state in ORDINARY or _is_mixed(state):
            return self._own_ways(state, target)[self._level(state, target)]
        if state in _WITHOUT_LONE:
            return sweeps.lone(self._tensors[target], self._uses[target], _OF_ONE_VALUE[state])
        if state != ZERO or not self._divisors:
            return None
        near = ways.near[max(self._level(FIRST, target) - len(ways.first), 0)]
        return state_ways.minute(near) if target in self._divisors else near


def _is_mixed(state):
    return state.startswith(f"{MIXED} ")
