# SPDX-License-Identifier: Apache-2.0
"""What is remembered between candidates when memory is short."""

import collections
import contextlib
import math

import pytest
import torch

from mtmc_reference.judge import Judge
from mtmc_reference.failure import Dropped, ProblemFailure
from mtmc_reference.memory_budget import MemoryBudget
from mtmc_reference.parked import _on_host, parked
from mtmc_reference.precision import Arithmetic
from mtmc_reference.prepared import PreparedWorkloads
from mtmc_reference.workload import PUBLIC, Key

_INPUT_BYTES, _OUTPUT_BYTES = 100, 100
_KEYS = [Key(seed) for seed in range(3)] + [Key(3 + i, f"D{i}") for i in range(6)]


class Expectation:
    later_seconds = 0.0

    def byte_count(self):
        return _OUTPUT_BYTES

    def hold_eager(self, inputs):
        pass


class Publication:
    byte_count = _INPUT_BYTES

    def __init__(self, inputs, is_numbered=True):
        self.inputs = inputs
        self.is_numbered = is_numbered
        self.is_damaged = self.is_released = False
        self.checked_time = -math.inf

    def release(self):
        self.is_released = True


class _Effort:
    """Seconds that draws and runs took since it was made."""

    def __init__(self, reference):
        self._reference, self._start = reference, reference.seconds

    @property
    def seconds(self):
        return self._reference.seconds - self._start


class Reference:
    """Plays judge, workloads, publisher and budget, counts draws, runs and publications.

    A draw takes a second, a run `run_seconds`.
    """

    def __init__(self, kept_bytes, run_seconds=5):
        self.workloads = self
        self.kept_bytes = kept_bytes
        self.run_seconds = run_seconds
        self.counts = collections.Counter()
        # Seconds that workloads took, by key.
        self.counted = collections.Counter()
        self.failures = []
        self.seconds = 0
        self.prepared = PreparedWorkloads(
            self, self, self, clock=lambda: self.seconds, start_effort=lambda: _Effort(self)
        )

    def draw(self, key):
        kept = self.kept_elsewhere(key)
        if kept is not None:
            return kept
        self.counts["draws"] += 1
        self.seconds += 1
        return [key]

    def draw_own(self, key):
        self.counts["own draws"] += 1
        return [key]

    def published_inputs(self, publication):
        return publication.inputs

    def damaged(self, publications):
        return [each for each in publications if each.is_damaged]

    def soften(self, key, reason):
        return False

    def settle(self, key):
        pass

    def count(self, key, seconds):
        self.counted[key] += seconds

    def expectation(self, key, inputs):
        if self.failures:
            raise self.failures.pop()
        assert inputs == [key]
        self.counts["runs"] += 1
        self.seconds += self.run_seconds
        return Expectation()

    def publish_inputs(self, inputs, is_numbered):
        self.counts["publications"] += 1
        return Publication(inputs, is_numbered)

    def most(self, kept):
        return self.kept_bytes

    def free_bytes(self):
        return self.kept_bytes - self.prepared.byte_count()

    def has(self, need):
        return self.free_bytes() >= need

    def return_passing(self, kept):
        pass

    def return_all(self):
        self.bytes_when_returned = self.prepared.byte_count()

    def candidate(self):
        """What one candidate costs: (draws, runs, publications)."""
        self.counts.clear()
        for key in _KEYS:
            self.prepared.prepare(key)
        return tuple(self.counts[name] for name in ("draws", "runs", "publications"))


def test_everything_is_remembered_where_it_fits():
    reference = Reference(9 * (_INPUT_BYTES + _OUTPUT_BYTES))

    assert [reference.candidate() for _ in range(3)] == [(9, 9, 9), (0, 0, 0), (0, 0, 0)]


def test_most_expectations_stay_where_four_of_nine_workloads_fit():
    reference = Reference(4 * (_INPUT_BYTES + _OUTPUT_BYTES))

    costs = [reference.candidate() for _ in range(3)]

    assert costs == [(9, 9, 9), (9, 2, 9), (9, 2, 9)]
    assert reference.prepared.byte_count() == reference.kept_bytes


def test_inputs_of_four_workloads_stay_where_no_more_fit():
    reference = Reference(9 * _OUTPUT_BYTES + 4 * _INPUT_BYTES)

    costs = [reference.candidate() for _ in range(3)]

    assert costs == [(9, 9, 9), (5, 0, 5), (5, 0, 5)]


def test_short_runs_are_repeated_on_inputs_that_stay():
    reference = Reference(9 * _INPUT_BYTES + 4 * _OUTPUT_BYTES, run_seconds=0.5)

    costs = [reference.candidate() for _ in range(3)]

    assert costs == [(9, 9, 9), (0, 5, 0), (0, 5, 0)]


def test_inputs_that_somebody_changed_are_drawn_again():
    reference = Reference(9 * (_INPUT_BYTES + _OUTPUT_BYTES))
    reference.candidate()
    entry = reference.prepared.prepare(_KEYS[2])
    entry.publication.is_damaged = True
    entry.release_expectation()

    assert reference.candidate() == (1, 1, 1)


def test_a_run_that_needs_room_takes_it_from_inputs_first():
    reference = Reference(9 * (_INPUT_BYTES + _OUTPUT_BYTES))
    reference.candidate()

    reference.make_room(3 * _INPUT_BYTES)

    assert reference.free_bytes() == 3 * _INPUT_BYTES
    assert reference.candidate() == (3, 0, 3)


def test_a_run_without_limit_gets_what_a_baseline_had_and_what_is_held_for_speed():
    reference = Reference(9 * (_INPUT_BYTES + _OUTPUT_BYTES))
    reference.candidate()
    reference.prepared.last_inputs()
    drawn = reference.counts["own draws"]

    reference.make_room(math.inf)

    # Nothing is released after memory was returned.
    assert reference.bytes_when_returned == _INPUT_BYTES + _OUTPUT_BYTES
    reference.prepared.last_inputs()
    assert reference.counts["own draws"] == drawn + 1


def test_memory_that_runs_out_is_taken_from_others():
    reference = Reference(9 * (_INPUT_BYTES + _OUTPUT_BYTES))
    reference.candidate()
    reference.failures = [torch.cuda.OutOfMemoryError("CUDA out of memory")]

    reference.prepared.prepare(Key(20))

    # The entry that was prepared last has all it needs, and nobody else has anything.
    assert reference.prepared.byte_count() == _INPUT_BYTES + _OUTPUT_BYTES


def test_who_is_judged_has_what_others_expect():
    reference = Reference(9 * (_INPUT_BYTES + _OUTPUT_BYTES))
    judged = reference.prepared.prepare(_KEYS[0])
    reference.prepared.prepare(_KEYS[1], keeps_last=True)
    last = reference.prepared.last

    def asks_for_all():
        reference.make_room(math.inf)
        return judged.expectation

    assert reference.prepared.with_room(asks_for_all, judged) is not None
    # The runner reads these.
    assert judged.publication is not None and last.publication is not None
    assert last.expectation is None
    runs = reference.counts["runs"]
    assert reference.prepared.expectation(_KEYS[1]) is not None
    assert reference.counts["runs"] == runs + 1


def test_another_process_gets_all_but_the_last_workload():
    reference = Reference(9 * (_INPUT_BYTES + _OUTPUT_BYTES))
    reference.candidate()

    reference.prepared.make_room()

    assert reference.prepared.byte_count() == _INPUT_BYTES + _OUTPUT_BYTES
    assert reference.prepared.last.publication is not None
    assert reference.candidate() == (8, 8, 8)


@pytest.mark.parametrize("keeps_last", (False, True))
def test_inputs_that_are_still_executed_stay(keeps_last):
    reference = Reference(_INPUT_BYTES + _OUTPUT_BYTES)
    before = reference.prepared.prepare(_KEYS[0])
    reference.prepared.prepare(_KEYS[1], keeps_last)
    reference.prepared.make_room()

    assert (before.publication is not None) == keeps_last
    reference.prepared.prepare(_KEYS[2])
    assert before.publication is None


def test_what_runs_out_of_memory_is_tried_again_with_room():
    reference = Reference(9 * (_INPUT_BYTES + _OUTPUT_BYTES))
    reference.candidate()
    failures = [torch.cuda.OutOfMemoryError("CUDA out of memory")]

    def sample():
        if failures:
            raise failures.pop()
        return reference.prepared.byte_count()

    assert reference.prepared.with_room(sample) == _INPUT_BYTES + _OUTPUT_BYTES


def test_other_failures_are_passed_on_and_take_nothing():
    reference = Reference(9 * (_INPUT_BYTES + _OUTPUT_BYTES))
    reference.candidate()
    reference.failures = [Dropped("not defined")]

    with pytest.raises(Dropped):
        reference.prepared.prepare(Key(20, "D"))

    assert reference.candidate()[1] == 0


def test_small_workloads_of_a_salt_stay_until_they_are_forgotten():
    reference = Reference(kept_bytes=3 * (_INPUT_BYTES + _OUTPUT_BYTES))
    fresh = reference.prepared.prepare(Key(1, salt=5))
    reference.candidate()

    assert not fresh.publication.is_released
    reference.prepared.forget(fresh.handle)
    assert fresh.publication is None


def test_large_workloads_of_a_salt_go_first(monkeypatch):
    monkeypatch.setattr("mtmc_reference.prepared._SMALL_BYTES", 0)
    reference = Reference(11 * (_INPUT_BYTES + _OUTPUT_BYTES))
    fresh = [reference.prepared.prepare(Key(1, salt=salt)) for salt in (5, 6, 7)]
    reference.candidate()

    assert fresh[0].publication is None
    assert reference.candidate() == (0, 0, 0)


def test_inputs_of_a_salt_stay_until_they_are_forgotten(monkeypatch):
    """The runner reads them once it has executed what was prepared before and after."""
    monkeypatch.setattr("mtmc_reference.prepared._SMALL_BYTES", 0)
    reference = Reference(2 * _INPUT_BYTES)
    own = [reference.prepared.prepare(Key(2, "MIXED", salt=4)) for _ in range(2)]
    fresh = reference.prepared.prepare(Key(1, salt=5))
    reference.candidate()
    reference.prepared.make_room()

    assert not any(entry.publication.is_released for entry in (*own, fresh))
    # What is expected of them can be made again, of what is shared.
    assert fresh.expectation is None
    draws = reference.counts["draws"]
    assert reference.prepared.expectation(fresh.key) and reference.counts["draws"] == draws
    reference.prepared.forget(fresh.handle)
    assert fresh.publication is None


def test_a_budget_leaves_room_for_others(monkeypatch):
    free = [1000]
    monkeypatch.setattr("mtmc_reference.memory_budget.free_bytes", lambda device: free[0])
    budget = MemoryBudget(torch.device("cuda:0"), room=600, passing=0)
    assert budget.most(kept=0) == 400

    # What the runner takes later is within its room.
    free[0] = 250
    assert budget.most(kept=300) == 400
    # Another process is not.
    free[0] = 60
    assert budget.most(kept=300) == 310


def test_memory_in_passing_goes_back_when_it_is_too_much(monkeypatch):
    returned = []
    monkeypatch.setattr(
        "mtmc_reference.memory_budget.return_cached_memory", lambda: returned.append(1)
    )
    monkeypatch.setattr("mtmc_reference.memory_budget.spare_bytes", lambda device: 1 << 30)
    monkeypatch.setattr("mtmc_reference.memory_budget.reserved_bytes", lambda device: 10 << 30)
    budget = MemoryBudget(torch.device("cuda:0"), room=0, passing=3 << 30)

    budget.return_passing(kept=8 << 30)
    assert not returned
    budget.return_passing(kept=7 << 30)
    assert returned


def test_a_budget_without_room_for_all_leaves_most_of_what_is_there(monkeypatch):
    monkeypatch.setattr("mtmc_reference.memory_budget.free_bytes", lambda device: 1000)
    budget = MemoryBudget(torch.device("cuda:0"), room=5000, passing=0)

    assert budget.most(kept=0) == 250


def test_a_damaged_publication_beside_an_entry_is_released():
    reference = Reference(kept_bytes=10_000)
    sound, damaged = Publication([]), Publication([])
    damaged.is_damaged = True

    reference.prepared.prepare(Key(1), beside=(sound, None, damaged))

    assert damaged.is_released
    assert not sound.is_released


def test_only_contents_that_are_asked_for_again_have_numbers():
    reference = Reference(kept_bytes=10_000)

    public = reference.prepared.prepare(Key(0)).publication
    fresh = reference.prepared.prepare(Key(1000, salt=5)).publication

    assert public.is_numbered
    assert not fresh.is_numbered


def test_a_publication_is_looked_at_now_and_then():
    reference = Reference(kept_bytes=10_000)
    state = Publication([])
    for _ in range(2):
        reference.prepared.prepare(Key(0), beside=(state,))
    state.is_damaged = True

    reference.prepared.prepare(Key(0), beside=(state,))
    assert not state.is_released
    reference.seconds += 1
    reference.prepared.prepare(Key(0), beside=(state,))
    assert state.is_released


class _Scarce:
    """Runs nothing, and runs out of memory as often as it says."""

    def __init__(self, failures):
        self.failures = failures

    def run(self, inputs, kind, observer=None, state=None):
        if self.failures:
            self.failures -= 1
            raise ProblemFailure("INPUTS_TOO_LARGE", "", 0, torch.cuda.OutOfMemoryError("memory"))
        return [torch.ones(2)]

    def state_of(self, key):
        return None


class _NoInputs:
    def draw(self, key):
        return []


@pytest.mark.parametrize("failures, is_found", [(0, True), (1, True), (2, True), (3, False)])
def test_an_honest_run_is_made_again_with_room(failures, is_found):
    judge = Judge(_Scarce(failures), _NoInputs(), torch.device("cpu"), False, True)
    asked = []
    judge.make_room = asked.append

    found = judge.honest_outputs(PUBLIC, Arithmetic.TF32, None)

    assert (found is not None) == is_found and len(asked) == min(failures, 2)


class _OnDevice:
    """As a tensor whose memory says where it is."""

    def __init__(self, place="cuda"):
        self.place = place
        self.data = self

    def cpu(self):
        return _OnDevice("cpu")

    def to(self, device):
        return _OnDevice(device.type)


@pytest.mark.parametrize("device, meanwhile", [("cuda", "cpu"), ("cpu", "cuda")])
def test_what_is_parked_comes_back(device, meanwhile, monkeypatch):
    monkeypatch.setattr("mtmc_reference.parked._on_host", _OnDevice.cpu)
    tensor = _OnDevice()

    with contextlib.suppress(ZeroDivisionError):
        with parked([tensor, tensor], torch.device(device)):
            places = tensor.data.place
            raise ZeroDivisionError

    assert places == meanwhile and tensor.data.place == "cuda"


def test_a_host_that_locks_no_pages_parks_all_the_same():
    tensor = torch.arange(6.0).view(2, 3)

    assert torch.equal(_on_host(tensor), tensor)


@pytest.mark.parametrize("kind", [Arithmetic.DEFAULT, Arithmetic.TF32, Arithmetic.STRICT])
def test_eager_has_room_to_choose_algorithms_in(kind, monkeypatch):
    """Where memory is short, cuDNN takes a slower algorithm and tells nobody."""
    monkeypatch.setattr("mtmc_reference.judge.free_bytes", lambda device: 99)
    judge = Judge(_Scarce(0), _NoInputs(), torch.device("cpu"), False, True)
    asked = []
    judge.make_room = asked.append
    for judge.choice_bytes in (99, 100):
        judge.honest_outputs(PUBLIC, kind, None)

    assert asked == ([] if kind == Arithmetic.STRICT else [100])
