# SPDX-License-Identifier: Apache-2.0
"""Workloads that are ready to be compared with, and their shared inputs.

An entry is found again by its key, and a candidate after the first costs neither
draws nor runs nor copies where memory is enough. Where it is not, entries give
theirs back, and what is asked of them later is computed again, because their seeds
are known:

    - Every candidate asks for the same keys in the same order. So the entries that
      were used last go first: they are the ones that are asked for again last.
    - Of shared inputs and expectations, those go first that take less time to make again
      for their size. Drawing inputs takes some passes over memory, and a run of the model
      any time, but inputs that are shared need not be drawn for it.
    - The inputs of the entry that was prepared last always stay, and those of the one before it
      where that is still in use. Of a salt, those of the last two of a distribution stay until
      they are forgotten: the runner may not have read them yet. What is expected of these goes
      at last, but for the one that is judged.
"""

import collections
import contextlib
import itertools
import math
import statistics
import time

from .distribution import NONE
from .effort import Effort
from .failure import Dropped, ProblemFailure, is_out_of_memory
from .workload import wait_for_device

# How often a publication is looked at, at most: no program runs while the other process
# has it mapped, so that damage would be an accident, and a look is a read of all of it.
_CHECK_SECONDS = 1.0
# A workload of so many bytes is small.
_SMALL_BYTES = 1 << 30
# One that the runner reads, and the next one.
_MOST_SALTED = 2


class Entry:
    """One workload: its expectation and its publication, either None when evicted."""

    def __init__(self, handle, key):
        self.handle = handle
        self.key = key
        self.expectation = None
        self.publication = None
        # What it took to make them, the last time.
        self.expectation_seconds = self.publication_seconds = 0.0
        # Whether outputs were compared with it: some of what is expected is only found out then.
        self.was_compared = False

    def byte_count(self):
        size = self.expectation.byte_count() if self.expectation else 0
        return size + (self.publication.byte_count if self.publication else 0)

    def release(self):
        self.release_expectation()
        self.release_publication()

    def release_expectation(self):
        self.expectation = None

    def release_publication(self):
        if self.publication is not None:
            self.publication.release()
            self.publication = None


class PreparedWorkloads:
    """The workloads of one problem. A resource: `release` frees what is shared.

    `publisher` shares a list of inputs as a publication, finds them there again, and tells
    which publications are damaged;
    `budget` is a MemoryBudget, `clock` returns seconds, `start_effort` an Effort.
    """

    def __init__(self, judge, publisher, budget, clock=time.perf_counter, start_effort=None):
        self._judge = judge
        self._publisher = publisher
        self._budget = budget
        self._clock = clock
        self._start_effort = start_effort or (lambda: Effort(judge.device))
        judge.make_room = self._make_room
        judge.return_memory = self._return_memory
        judge.workloads.kept_elsewhere = self._published_inputs
        self._by_key = collections.OrderedDict()
        self._by_handle = {}
        self._handles = itertools.count(1)
        # Reason by key, or by distribution, of workloads on which no candidate can be
        # judged.
        self._dropped = {}
        # The entry that was prepared last, of those that are remembered by key, and the one
        # before if that is still in use.
        self.last = self._in_use = None
        # Entries of a salt that were given out, by distribution.
        self._salted = collections.defaultdict(lambda: collections.deque(maxlen=_MOST_SALTED))
        # The entry that `with_room` works on.
        self._needed = None
        # Inputs of `last`, once they have been drawn again for a baseline.
        self._inputs = None

    def release(self):
        for entry in self._by_handle.values():
            entry.release()
        self._by_key.clear()
        self._by_handle.clear()
        self._salted.clear()
        self.last = self._in_use = self._inputs = None

    def prepare(self, key, keeps_last=False, beside=()):
        """The entry of `key`, published; raises Dropped. `keeps_last` tells that the entry
        prepared last is still in use. Publications `beside` it that are damaged are released
        with its own, if that is."""
        self._in_use = self.last if keeps_last else None
        self._require_judged(key)
        entry = self._by_key.get(key) or self._new_entry(key)
        self._by_key.move_to_end(key)
        if key.salt:
            self._give_out(entry)
        elif self.last is not entry:
            self.last, self._inputs = entry, None
        # What expected outputs are made from has to be sound now.
        is_source = entry.publication is not None and entry.expectation is None
        if is_source:
            entry.publication.checked_time = -math.inf
        self._release_damaged(entry.publication, *beside)
        if entry.publication is not None and entry.publication.is_released:
            entry.publication = None
        if entry.expectation is None or entry.publication is None:
            self._complete(entry, is_published=True)
        return entry

    def _give_out(self, entry):
        given = self._salted[entry.key.distribution]
        if entry not in given:
            given.append(entry)

    def _release_damaged(self, *publications):
        """Releases those of them that are damaged, once they were not looked at for a while."""
        now = self._clock()
        due = [each for each in publications if each and each.checked_time + _CHECK_SECONDS <= now]
        for publication in self._publisher.damaged(due):
            publication.release()
        for publication in due:
            publication.checked_time = now

    def find(self, handle):
        """The entry of a handle that `prepare` gave out (0: the last); None if unknown."""
        return self._by_handle.get(handle) if handle else self.last

    def entry(self, key):
        """The entry of a key that was asked for; None if there is none."""
        return self._by_key.get(key)

    def expectation(self, key):
        """The expectation of a key, computed if it is not there; raises Dropped."""
        self._require_judged(key)
        entry = self._by_key.get(key) or self._new_entry(key)
        if entry.expectation is None:
            self._complete(entry, is_published=False)
        return entry.expectation

    def forget(self, handle):
        """Frees the workload of a salt; others are remembered for the next candidate."""
        entry = self._by_handle.get(handle)
        if entry is not None and entry.key.salt:
            self._remove(entry)

    def last_inputs(self):
        """Inputs of the entry that was prepared last."""
        if self._inputs is None:
            self._inputs = self._judge.workloads.draw_own(self.last.key)
        return self._inputs

    def byte_count(self):
        """Bytes that all entries keep."""
        return sum(entry.byte_count() for entry in self._by_key.values())

    def drop(self, distribution, reason):
        """From now on, no candidate is judged on a distribution."""
        self._dropped[distribution] = reason

    def forget_costs(self):
        """From now on, only what is asked of the expectations later counts as their cost."""
        for entry in self._by_key.values():
            if entry.expectation:
                entry.expectation.later_seconds = 0.0

    def make_room(self, needed=None):
        """Frees all that is not needed to go on with the last workload, and with `needed`."""
        self._inputs = None
        self._give_back(needed or self.last, lambda: False)
        self._budget.return_all()

    def with_room(self, function, needed=None):
        """The result of `function`, which works on the entry `needed`; where its memory runs
        out, it is called again after `make_room`."""
        before, self._needed = self._needed, needed
        try:
            try:
                return function()
            except (ProblemFailure, RuntimeError, MemoryError) as error:
                if not is_out_of_memory(getattr(error, "cause", None) or error):
                    raise
            self.make_room(needed)
            return function()
        finally:
            self._needed = before

    def _return_memory(self):
        expectations = [e.expectation for e in self._by_key.values() if e.expectation]
        self._budget.return_passing(sum(each.byte_count() for each in expectations))

    def _published_inputs(self, key):
        entry = self._by_key.get(key)
        if entry is None or entry.publication is None:
            return None
        if self._publisher.damaged([entry.publication]):
            return None
        return self._publisher.published_inputs(entry.publication)

    def _inputs_of(self, entry):
        """Inputs of an entry whose publication, if it has one, is intact."""
        inputs = None
        if entry.publication is not None:
            inputs = self._publisher.published_inputs(entry.publication)
        return self._judge.workloads.draw(entry.key) if inputs is None else inputs

    def _require_judged(self, key):
        reason = self._dropped.get(key) or self._dropped.get(key.distribution)
        if reason:
            raise Dropped(reason)

    def _new_entry(self, key):
        entry = Entry(next(self._handles), key)
        self._by_key[key] = self._by_handle[entry.handle] = entry
        return entry

    def _complete(self, entry, is_published):
        """Draws the inputs of `entry`, and makes of them what it lacks."""
        effort = self._start_effort()
        try:
            self.with_room(lambda: self._make(entry, is_published), entry)
        finally:
            self._judge.count(entry.key, effort.seconds)
        if self._is_transient(entry):
            return
        kept = self.byte_count()
        most = self._budget.most(kept)
        self._give_back(entry, lambda: self.byte_count() <= most)
        self._return_memory()

    def _make(self, entry, is_published):
        start = self._clock()
        try:
            self._judge.settle(entry.key)
            inputs = self._inputs_of(entry)
            wait_for_device()
            drawn = self._clock()
            if entry.expectation is None:
                entry.expectation = self._judge.expectation(entry.key, inputs)
                entry.expectation_seconds = self._clock() - drawn
        except Dropped as dropped:
            if entry.key.distribution == NONE or not self._judge.soften(entry.key, str(dropped)):
                if not entry.key.salt:
                    self._dropped[entry.key] = str(dropped)
                self._remove(entry)
                raise
            inputs = None
            self._make(entry, is_published)
            return
        if is_published:
            if not entry.key.salt:
                entry.expectation.hold_eager(inputs)
            if entry.publication is None:
                before = self._clock()
                # Nobody asks twice for those of a salt.
                is_numbered = not entry.key.salt
                entry.publication = self._publisher.publish_inputs(inputs, is_numbered)
                entry.publication_seconds = self._clock() - before + drawn - start

    def _remove(self, entry):
        entry.release()
        del self._by_key[entry.key]
        del self._by_handle[entry.handle]
        with contextlib.suppress(ValueError):
            self._salted[entry.key.distribution].remove(entry)
        if self.last is entry:
            self.last = None

    def _is_transient(self, entry):
        """Whether the entry is small, and forgotten after the one use that it is in."""
        return entry.key.salt and entry.byte_count() <= _SMALL_BYTES

    def _make_room(self, need):
        """Tries to have `need` bytes free for a run."""
        self._inputs = None
        self._give_back(self._needed or self.last, lambda: self._budget.has(need))
        # What was released last is held for speed until now.
        self._budget.return_all()

    def _give_back(self, needed, is_enough):
        """Frees memory until `is_enough()`, that of `needed` and inputs in use never."""
        given = list(itertools.chain.from_iterable(self._salted.values()))
        kept = (needed, self.last, self._in_use, *given)
        others = [
            e
            for e in self._by_key.values()
            if all(e is not one for one in kept) and not self._is_transient(e)
        ]
        # Nobody asks for those of a salt by their key again.
        order = sorted(reversed(others), key=lambda entry: not entry.key.salt)
        parts = [(Entry.release, entry) for entry in order if entry.key.salt]
        parts += [(release, entry) for release in self._cheapest_first() for entry in order]
        in_use = [entry for entry in (*given, self._in_use, self.last) if entry is not None]
        parts += [(Entry.release_expectation, entry) for entry in in_use if entry is not needed]
        for release, entry in parts:
            if is_enough():
                return
            release(entry)

    def _cheapest_first(self):
        """The ways to free a part of an entry, by what a byte costs to make again."""
        entries = self._by_key.values()
        publication_costs = [
            e.publication_seconds / max(e.publication.byte_count, 1)
            for e in entries
            if e.publication
        ]
        expectation_costs = [
            (e.expectation_seconds + e.expectation.later_seconds)
            / max(e.expectation.byte_count(), 1)
            for e in entries
            if e.expectation
        ]
        # Not the mean: what a first time takes longer says nothing about the next.
        publication_cost = statistics.median_high(publication_costs or [0.0])
        expectation_cost = statistics.median_high(expectation_costs or [0.0])
        releases = [Entry.release_publication, Entry.release_expectation]
        return releases if publication_cost <= expectation_cost else releases[::-1]
