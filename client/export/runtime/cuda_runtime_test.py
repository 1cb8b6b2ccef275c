# SPDX-License-Identifier: Apache-2.0
"""Exported CUDA programs launch and replay correctly, seen through a driver that computes on a
dictionary of addresses: no GPU and no cuda.bindings are needed."""

import contextlib
import ctypes
import sys
import types
import weakref

import exported
import pytest
import torch


class Machine:
    """A driver and the part of torch.cuda that files use. Memory maps addresses to numbers;
    every kernel adds its first two tensors and its scalar into the third."""

    def __init__(self):
        self.memory = {}
        self.current = types.SimpleNamespace(
            cuda_stream=7, device=torch.device("cuda", 0), wait_stream=lambda other: None
        )
        self.device = 0
        self.capture = None
        self.is_foreign_capture = False
        self.launches = 0
        self.replays = 0
        self.fails_in_capture = False
        self.addresses = iter(range(1024, 1 << 20, 16))
        self.used, self.emptied = [], []

    def launch(self, function, gx, gy, gz, bx, by, bz, shared, stream, arguments, extra):
        assert (gx, gy, gz, bx, by, bz, shared, extra) == (2, 1, 1, 4, 1, 1, 0, 0)
        assert (function, stream) == (b"add", self.current.cuda_stream)
        pointers = (ctypes.c_void_p * 4).from_address(arguments)
        x, w, y = (ctypes.c_void_p.from_address(pointers[at]).value for at in (0, 1, 3))
        scalar = ctypes.c_int64.from_address(pointers[2]).value
        if self.capture is not None:
            if self.fails_in_capture:
                raise RuntimeError("operation not permitted when stream is capturing")
            self.capture.append((x, w, scalar, y))
        else:
            self.launches += 1
            self.add(x, w, scalar, y)
        return (0,)

    def add(self, x, w, scalar, y):
        self.memory[y] = self.memory[x] + self.memory[w] + scalar

    def tensor(self, value, address=None, shape=(8,), is_dense=True):
        return Tensor(self, address or next(self.addresses), shape, value, is_dense)

    def empty(self, shape, strides, dtype, device):
        """The memory that was let go of last, as PyTorch's allocator gives it."""
        assert (shape, strides, dtype, device.index) == ((8,), (1,), torch.float32, 0)
        alive = {ref().data_ptr() for ref in self.emptied if ref() is not None}
        free = [address for address in self.used if address not in alive]
        address = free[-1] if free else next(self.addresses)
        self.used = [each for each in self.used if each != address] + [address]
        made = Tensor(self, address, shape, None)
        self.emptied.append(weakref.ref(made))
        return made

    def bindings(self):
        driver = types.SimpleNamespace(
            cuLaunchKernel=self.launch,
            cuModuleLoadData=lambda binary: (0, binary),
            cuModuleGetFunction=lambda module, name: (0, name),
        )
        return types.SimpleNamespace(driver=driver)

    def torch(self):
        machine = self

        class Graph:
            def capture_begin(self, pool, capture_error_mode):
                machine.capture = self.steps = []

            def capture_end(self):
                machine.capture = None

            def replay(self):
                machine.replays += 1
                for step in self.steps:
                    machine.add(*step)

        @contextlib.contextmanager
        def stream(side):
            before, machine.current = machine.current, side
            yield
            machine.current = before

        @contextlib.contextmanager
        def entered(device):
            before, machine.device = machine.device, device.index
            yield
            machine.device = before

        cuda = types.SimpleNamespace(
            current_stream=lambda device: machine.current,
            is_current_stream_capturing=lambda: machine.is_foreign_capture,
            Stream=lambda device: types.SimpleNamespace(
                cuda_stream=99, device=device, wait_stream=lambda other: None
            ),
            graph_pool_handle=object,
            CUDAGraph=Graph,
            stream=stream,
            current_device=lambda: machine.device,
            device=entered,
            get_device_capability=lambda device: (9, 0),
        )
        return types.SimpleNamespace(
            cuda=cuda,
            empty_strided=machine.empty,
            no_grad=torch.no_grad,
            is_grad_enabled=torch.is_grad_enabled,
            Tensor=Tensor,
        )


class Tensor:
    dtype = torch.float32
    device = torch.device("cuda", 0)

    def __init__(self, machine, address, shape, value=0, is_dense=True):
        self._machine = machine
        self._address = address
        self._is_dense = is_dense
        self.shape = shape
        machine.memory[address] = value

    def contiguous(self):
        return self if self._is_dense else self.clone()

    def is_contiguous(self):
        return self._is_dense

    def get_device(self):
        return -1 if self.device.index is None else self.device.index

    def data_ptr(self):
        return self._address

    def stride(self):
        return (1,)

    def clone(self):
        return self._machine.tensor(self.value)

    def copy_(self, other):
        step = (other.data_ptr(), 0, 0, self._address)
        self._machine.memory[0] = 0
        if self._machine.capture is None:
            self._machine.add(*step)
        else:
            self._machine.capture.append(step)

    @property
    def value(self):
        return self._machine.memory[self._address]


class Model:
    """y = x + w + 5, and what it counts in `total`, as an exported file would."""

    def __init__(self, machine, replays=True, apart=(0,), fake_torch=None, results=()):
        file = exported.module(
            "tensors",
            "cuda_runtime",
            _mtmc_torch=fake_torch or machine.torch(),
            _mtmc_compile=lambda *arguments: b"cubin",
        )
        self.machine = machine
        spec = ((8,), torch.float32)
        self.makes = bool(results)
        self.program = file._MtmcProgram("source", {}, [spec, spec], replays, apart, results)
        five = (5).to_bytes(8, "little")
        self.add = file._MtmcKernel(
            self.program, "add", (2, 1, 1), (4, 1, 1), 0, [None, None, five, None]
        )
        self.w = machine.tensor(100)
        self.total = machine.tensor(0)

    def plan(self, device, x, w, total):
        y = self.program.result(0) if self.makes else self.machine.tensor(0)
        self.add(x, w, y)
        total.copy_(y)
        return [y]

    def __call__(self, x):
        return self.program.run(self.plan, [x, self.w], [self.total])[0]


@pytest.fixture
def machine(monkeypatch):
    made = Machine()
    package = types.ModuleType("cuda")
    monkeypatch.setitem(sys.modules, "cuda", package)
    monkeypatch.setitem(sys.modules, "cuda.bindings", made.bindings())
    return made


@pytest.mark.parametrize("gradients", [True, False])
@pytest.mark.parametrize("device", [0, 1])
def test_a_plan_runs_on_its_device_without_gradients(machine, device, gradients):
    seen, machine.device = [], device

    def plan(where, x, w, total):
        seen.append((machine.device, torch.is_grad_enabled(), where.index))
        return [x]

    model = Model(machine)
    with torch.set_grad_enabled(gradients):
        model.program.run(plan, [machine.tensor(1), model.w], [model.total])
    assert seen == [(0, False, 0)]
    assert machine.device == device


def test_a_plan_of_launches_alone_has_no_gradients_to_switch_off(machine):
    model = Model(machine, replays=False, apart=())

    def plan(device, x, w):
        y = machine.tensor(0)
        model.add(x, w, y)
        return [y]

    machine.device = 1
    with torch.enable_grad():
        [y] = model.program.run(plan, [machine.tensor(1), model.w], [])
    assert (y.value, machine.device) == (106, 1)


def test_what_pytorch_answers_directly_is_asked_directly(machine):
    """Names with an underscore are taken where they are there."""
    asked = []

    def stream(index):
        asked.append(index)
        return machine.current.cuda_stream

    fake = machine.torch()
    fake._C = types.SimpleNamespace(
        _cuda_getDevice=lambda: machine.device, _cuda_getCurrentRawStream=stream
    )
    fake.cuda.current_device = None
    model = Model(machine, replays=False, fake_torch=fake)
    assert model(machine.tensor(1)).value == 106
    assert asked == [0]


def test_a_call_is_launched_twice_and_then_replayed(machine):
    model, x = Model(machine), machine.tensor(1)
    assert [model(x).value for _ in range(5)] == [106] * 5
    assert (machine.launches, machine.replays) == (2, 3)


def test_a_replay_reads_new_values_at_old_addresses(machine):
    model, x = Model(machine), machine.tensor(1)
    for _ in range(3):
        model(x)
    machine.memory[x.data_ptr()] = 2
    machine.memory[model.w.data_ptr()] = 200
    assert model(x).value == 207
    assert machine.replays == 2


def test_a_result_stays_when_the_next_call_is_made(machine):
    model, x = Model(machine), machine.tensor(1)
    for _ in range(3):
        kept = model(x)
    machine.memory[x.data_ptr()] = 2
    assert (model(x).value, kept.value) == (107, 106)


def test_a_replay_changes_what_the_model_keeps(machine):
    model, x = Model(machine), machine.tensor(1)
    for _ in range(3):
        model(x)
    machine.memory[x.data_ptr()] = 3
    model(x)
    assert model.total.value == 108


def test_a_moved_target_is_changed_where_it_lies_now(machine):
    model, x = Model(machine), machine.tensor(1)
    for _ in range(3):
        model(x)
    before, model.total = model.total, machine.tensor(0)
    machine.memory[before.data_ptr()] = 0
    for _ in range(3):
        model(x)
    assert (before.value, model.total.value) == (0, 106)


def test_a_target_that_is_an_input_moves_with_it(machine):
    """`total` is what the plan reads as w; no target is told apart from the inputs."""
    model, x = Model(machine, apart=()), machine.tensor(1)
    for _ in range(2):
        model.w = model.total = machine.tensor(100)
        for count in range(1, 4):
            assert model(x).value == 100 + 6 * count
            assert model.w.value == 100 + 6 * count


def test_a_target_is_changed_although_a_copy_of_it_is_read(machine):
    model, x = Model(machine, apart=()), machine.tensor(1)
    for _ in range(2):
        model.w = model.total = machine.tensor(100, is_dense=False)
        for count in range(1, 4):
            model(x)
            assert model.w.value == 100 + 6 * count


def test_a_moved_parameter_is_read_where_it_lies_now(machine):
    model, x = Model(machine), machine.tensor(1)
    for _ in range(3):
        model(x)
    model.w = machine.tensor(1000)
    assert [model(x).value for _ in range(4)] == [1006] * 4


MADE = [((8,), (1,), torch.float32)]


def test_a_replay_writes_where_pytorch_made_room(machine):
    """No copy, and memory that a caller holds is never written to."""
    model, x = Model(machine, results=MADE), machine.tensor(1)
    assert [model(x).value for _ in range(5)] == [106] * 5
    assert (machine.launches, machine.replays) == (2, 3)


def test_results_that_are_held_until_the_next_call_are_replayed_in_turns(machine):
    model, x = Model(machine, results=MADE), machine.tensor(1)
    held = model(x)
    for value in range(2, 10):
        machine.memory[x.data_ptr()] = value
        result = model(x)
        assert (result.value, held.value) == (105 + value, 104 + value)
        held = result
        del result
    assert (machine.launches, machine.replays) == (4, 5)


def test_results_that_are_all_held_are_launched_at_places_of_their_own(machine):
    model, x = Model(machine, results=MADE), machine.tensor(1)
    held = []
    for value in range(12):
        machine.memory[x.data_ptr()] = value
        held.append(model(x))
    assert [tensor.value for tensor in held] == [105 + value for value in range(12)]
    assert machine.replays == 0
    assert len(model.program._graphs) == model.program._MAX_GRAPHS


def test_a_result_is_made_anew_inside_a_capture_of_the_caller(machine):
    model, x = Model(machine, results=MADE), machine.tensor(1)
    for _ in range(3):
        model(x)
    machine.is_foreign_capture = True
    assert model(x).value == 106
    assert machine.replays == 1


def test_each_stream_has_its_own_graph(machine):
    model, x = Model(machine), machine.tensor(1)
    for _ in range(3):
        model(x)
    machine.current = types.SimpleNamespace(
        cuda_stream=8, device=machine.current.device, wait_stream=lambda other: None
    )
    assert model(x).value == 106
    assert machine.replays == 1


def test_kernels_are_launched_inside_a_capture_of_the_caller(machine):
    model, x = Model(machine), machine.tensor(1)
    for _ in range(3):
        model(x)
    machine.is_foreign_capture = True
    assert model(x).value == 106
    assert machine.replays == 1


def test_what_cannot_be_captured_is_launched_each_time(machine):
    model, x = Model(machine), machine.tensor(1)
    machine.fails_in_capture = True
    assert [model(x).value for _ in range(5)] == [106] * 5
    assert (machine.launches, machine.replays) == (5, 0)


def test_a_plan_that_does_not_pay_is_launched_each_time(machine):
    model, x = Model(machine, replays=False), machine.tensor(1)
    assert [model(x).value for _ in range(5)] == [106] * 5
    assert machine.replays == 0


def test_few_graphs_are_kept_and_the_one_used_last_stays(machine):
    model = Model(machine)
    inputs = [machine.tensor(value) for value in range(10)]
    for x in inputs:
        for _ in range(3):
            model(x)
    before = machine.replays
    model(inputs[-1])
    assert machine.replays == before + 1
    model(inputs[0])
    assert machine.replays == before + 1
    assert len(model.program._graphs) == model.program._MAX_GRAPHS


def test_a_tensor_of_another_shape_is_refused(machine):
    model = Model(machine)
    with pytest.raises(ValueError, match="input 0 of the program"):
        model(machine.tensor(1, shape=(9,)))


def test_a_tensor_of_another_device_is_refused(machine):
    model, x = Model(machine), machine.tensor(1)
    x.device = torch.device("cpu")
    with pytest.raises(ValueError, match="not on cpu"):
        model(x)


def test_a_part_of_a_tensor_lies_where_wide_loads_can_read_it(machine):
    model, x = Model(machine), machine.tensor(1, address=(1 << 21) + 4)
    read, add = [], machine.add
    machine.add = lambda *step: read.append(step[0]) or add(*step)

    assert model(x).value == 106
    assert all(address % 16 == 0 for address in read)
