# SPDX-License-Identifier: Apache-2.0
# What PyTorch's public functions for these make objects for, before a first kernel can start.
_mtmc_current_device = _mtmc_direct("_cuda_getDevice", lambda: _mtmc_torch.cuda.current_device())
_mtmc_current_stream = _mtmc_direct(
    "_cuda_getCurrentRawStream", lambda index: _mtmc_torch.cuda.current_stream(index).cuda_stream)
_mtmc_is_capturing = _mtmc_direct(
    "_cuda_isCurrentStreamCapturing", lambda: _mtmc_torch.cuda.is_current_stream_capturing())


class _MtmcProgram:
    """Runs the program's plan on PyTorch's current stream.

    What the host does for a launch takes longer than many kernels. A plan that is called
    again with tensors at the same addresses is therefore captured as a CUDA graph, and
    replayed from then on; values may have changed, addresses, shapes and stream may not.
    Memory for results of kernels is taken from PyTorch before each call, and is among the
    addresses: a caller who lets go of results, now or a call later, gets the same few again and
    again. Results of library calls lie where the graph has them, so that callers get copies; the
    exporter lets only those plans be replayed whose copies cost less than their launches
    (`replays`). Inside somebody else's capture, kernels are launched one by one. Safe to call
    from several threads: one at a time enqueues."""

    # Graphs share their scratch memory, and a caller may use as many streams and inputs as it likes.
    _MAX_GRAPHS = 8
    # Addresses that never return would otherwise be captured for nothing, again and again.
    _MAX_CAPTURES = 64
    # Bytes of the widest load.
    _ALIGNMENT = 16

    def __init__(self, source, macros, shapes, replays, apart, results=()):
        """`shapes` are (shape, element type) of the inputs, `results` (shape, strides, element
        type) of what the plan asks `result` for; `apart` numbers those targets that are not among
        the inputs."""
        self._source = source
        self._macros = macros
        self._shapes = [shape for shape, _ in shapes]
        self._types = [data_type for _, data_type in shapes]
        self._replays = replays
        self._results = results
        self._apart = apart
        self._lock = _mtmc_threading.Lock()
        self._modules = {}
        self._graphs = {}
        self._num_captures = 0
        self._pools = {}
        # Whether plans have launches only, which neither settings nor gradients concern.
        self._is_alone = isinstance(_mtmc_settings, _mtmc_contextlib.nullcontext)
        # By number, so that none is made for each run.
        self._devices = {}
        # Where kernels are launched, and memory for results; set for the time of a run.
        self.device = self.stream = self._made = None

    def run(self, plan, inputs, targets):
        """The results of `plan(device, *inputs, *targets)`, which nobody else holds. `targets`
        are the tensors that the plan changes."""
        # A network has hundreds of inputs, and the GPU waits: as little Python for each as can be.
        tensor_class = _mtmc_torch.Tensor
        addresses = [*map(tensor_class.data_ptr, inputs)]
        written = [targets[at] for at in self._apart]
        if (not all(map(tensor_class.is_contiguous, inputs))
                or [at for at in addresses if at % self._ALIGNMENT]):
            inputs = [self._laid_out(tensor) for tensor in inputs]
            addresses = [*map(tensor_class.data_ptr, inputs)]
            # The plan reads copies of some and changes the tensors themselves.
            written = targets
        _mtmc_check(inputs, self._shapes, self._types)
        first = (inputs or targets)[0]
        index = first.get_device()
        device = self._devices.get(index) or self._device_of(first)
        with self._lock:
            stream = _mtmc_current_stream(index)
            if not self._replays or _mtmc_is_capturing():
                return self._launch(plan, inputs, targets, device, stream)
            made = [_mtmc_torch.empty_strided(shape, strides, dtype=data_type, device=device)
                    for shape, strides, data_type in self._results]
            key = (stream, *addresses, *map(tensor_class.data_ptr, made),
                   *[(tensor.data_ptr(), tensor.stride()) for tensor in written])
            # Taken out and put back, so that the one that was used longest ago comes first.
            graph = self._graphs.pop(key, None)
            if graph is None:
                results = self._launch(plan, inputs, targets, device, stream, made)
                graph = _MtmcGraph()
            elif graph.results is not None:
                graph.cuda_graph.replay()
                results = [made[each] if each.__class__ is int else each.clone()
                           for each in graph.results]
            else:
                results = self._launch(plan, inputs, targets, device, stream, made)
                if not graph.is_refused and self._num_captures < self._MAX_CAPTURES:
                    self._num_captures += 1
                    self._capture(graph, plan, inputs, targets, device, made)
            # The caller alone holds results.
            self._made = None
            self._graphs[key] = graph
            if len(self._graphs) > self._MAX_GRAPHS:
                del self._graphs[next(iter(self._graphs))]
            return results

    def _device_of(self, tensor):
        device = tensor.device
        if device.type != "cuda":
            raise ValueError(f"the program runs on a CUDA device, not on {device}")
        self._devices[device.index] = device
        return device

    def _laid_out(self, tensor):
        """The tensor as kernels read it: dense, and where several elements can be loaded at once,
        which a part of a larger tensor need not be."""
        tensor = tensor.contiguous()
        return tensor.clone() if tensor.data_ptr() % self._ALIGNMENT else tensor

    def result(self, number):
        """Memory for one of `results`, while a plan runs: each is asked for once."""
        if self._made is not None:
            return self._made[number]
        shape, strides, data_type = self._results[number]
        return _mtmc_torch.empty_strided(shape, strides, dtype=data_type, device=self.device)

    def _launch(self, plan, inputs, targets, device, stream, made=None):
        """Enters only what is not so already: that is the host's work before a first kernel.
        `made` is the memory for results, where that is there."""
        self.device, self.stream, self._made = device, stream, made
        if _mtmc_current_device() != device.index:
            with _mtmc_torch.cuda.device(device):
                return self._launch(plan, inputs, targets, device, stream, made)
        if self._is_alone and not targets:
            return plan(device, *inputs)
        if _mtmc_torch.is_grad_enabled():
            with _mtmc_torch.no_grad():
                return self._launch(plan, inputs, targets, device, stream, made)
        with _mtmc_settings:
            return plan(device, *inputs, *targets)

    def _capture(self, graph, plan, inputs, targets, device, made):
        """The plan has just been run, so that everything it uses is compiled, loaded and chosen.
        Graphs of one stream share their memory: each is replayed and copied from as a whole."""
        cuda = _mtmc_torch.cuda
        stream = cuda.current_stream(device)
        side = cuda.Stream(device)
        side.wait_stream(stream)
        pool = self._pools.setdefault(stream.cuda_stream, cuda.graph_pool_handle())
        cuda_graph = cuda.CUDAGraph()
        try:
            with cuda.stream(side):
                # Other threads may do what they like meanwhile.
                cuda_graph.capture_begin(pool=pool, capture_error_mode="thread_local")
                try:
                    results = self._launch(plan, inputs, targets, device, side.cuda_stream, made)
                finally:
                    cuda_graph.capture_end()
            graph.cuda_graph = cuda_graph
            # What was made is the caller's, and comes back when that lets go of it.
            numbers = {id(tensor): number for number, tensor in enumerate(made)}
            graph.results = [numbers.get(id(tensor), tensor) for tensor in results]
        except RuntimeError:
            # A library call that waits for the device cannot be captured.
            graph.is_refused = True

    def function(self, kernel, shared_bytes):
        """The kernel, compiled once and loaded on each device that it is launched on."""
        from cuda.bindings import driver

        index = self.device.index
        if index not in self._modules:
            major, minor = _mtmc_torch.cuda.get_device_capability(self.device)
            error, self._modules[index] = driver.cuModuleLoadData(
                _mtmc_compile(self._source, self._macros, major, minor))
            if error:
                del self._modules[index]
                raise RuntimeError(f"the program cannot be loaded: {error}")
        error, function = driver.cuModuleGetFunction(self._modules[index], kernel.encode())
        if error:
            raise RuntimeError(f"the program has no kernel {kernel}: {error}")
        if shared_bytes > 48 * 1024:
            limit = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
            driver.cuFuncSetAttribute(function, limit, shared_bytes)
        return function


class _MtmcGraph:
    """A plan at certain addresses: seen once, then captured, or refused. `results` are tensors of
    the graph, or numbers of those that were made for the call."""

    def __init__(self):
        self.cuda_graph = self.results = None
        self.is_refused = False


class _MtmcKernel:
    """A launch whose arguments lie ready, but for the addresses of tensors.

    `arguments` are bytes, or None where the launch gets a tensor."""

    def __init__(self, program, kernel, grid, block, shared_bytes, arguments):
        self._program = program
        self._kernel = kernel
        self._extents = (*grid, *block, shared_bytes)
        self._functions = {}
        self._launch = None
        self._values = [
            _mtmc_ctypes.c_void_p() if value is None
            else _mtmc_ctypes.create_string_buffer(value, len(value)) for value in arguments]
        self._addresses = [value for value, given in zip(self._values, arguments) if given is None]
        self._pointers = (_mtmc_ctypes.c_void_p * len(arguments))(
            *[_mtmc_ctypes.addressof(value) for value in self._values])
        self._arguments = _mtmc_ctypes.addressof(self._pointers)

    def __call__(self, *tensors):
        program = self._program
        function = self._functions.get(program.device.index)
        if function is None:
            from cuda.bindings import driver

            # An import finds its module again in a microsecond: too long for each launch.
            self._launch = driver.cuLaunchKernel
            function = program.function(self._kernel, self._extents[-1])
            self._functions[program.device.index] = function
        for address, tensor in zip(self._addresses, tensors):
            address.value = tensor.data_ptr()
        (error,) = self._launch(function, *self._extents, program.stream, self._arguments, 0)
        if error:
            raise RuntimeError(f"launch of {self._kernel} failed: {error}")
