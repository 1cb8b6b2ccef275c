# SPDX-License-Identifier: Apache-2.0
class _MtmcProgram:
    """Runs the program's plan on a CPU's OpenCL device, on the memory of PyTorch's own tensors.

    Kernels are enqueued and waited for once: before a library call, a change of a target, or
    the return. What they use is kept until then. Safe to call from several threads: one
    at a time runs."""

    def __init__(self, source, macros, shapes, replays, apart, results=()):
        del replays, apart, results  # There are no graphs on a CPU.
        self._source = source
        self._macros = macros
        self._shapes = [shape for shape, _ in shapes]
        self._types = [data_type for _, data_type in shapes]
        self._lock = _mtmc_threading.Lock()
        self._device = _mtmc_torch.device("cpu")
        # What kernels use that have not been waited for.
        self._in_use = []
        # Whether plans have launches only, which neither settings nor gradients concern.
        self._is_alone = isinstance(_mtmc_settings, _mtmc_contextlib.nullcontext)
        self._program = self._queue = self.context = self.queue = None
        # Whether kernels may be given addresses of the host.
        self.takes_addresses = False
        # The functions of the OpenCL library that is called for each launch.
        self.library = None

    def run(self, plan, inputs, targets):
        """The results of `plan(device, *inputs, *targets)`. `targets` are the tensors that the
        plan changes."""
        inputs = [tensor.contiguous() for tensor in inputs]
        _mtmc_check(inputs, self._shapes, self._types)
        with self._lock:
            try:
                if self._is_alone and not targets:
                    return plan(self._device, *inputs)
                with _mtmc_torch.no_grad(), _mtmc_settings:
                    return plan(self._device, *inputs, *targets)
            finally:
                # After an error.
                if self._in_use:
                    self.wait()

    def wait(self):
        """Returns when every kernel that was enqueued has ended."""
        if self._in_use:
            status = self.library.clFinish(self._queue)
            self._in_use.clear()
            if status:
                raise RuntimeError(f"the program failed: OpenCL status {status}")

    def enqueue(self, kernel, size, block, tensors):
        """Starts a kernel, whose arguments are set; the kernel and extents are addresses. The
        tensors live until it has been waited for."""
        self._in_use.append(tensors)
        return self.library.clEnqueueNDRangeKernel(
            self._queue, kernel, 3, None, size, block, 0, None, None)

    def function(self, kernel):
        import pyopencl as cl

        if self._program is None:
            devices = [(p, d) for p in cl.get_platforms() for d in p.get_devices()
                       if d.type & cl.device_type.CPU]
            if not devices:
                raise RuntimeError("no OpenCL device for the CPU; install pocl-opencl-icd")
            platform, device = devices[0]
            self.context = cl.Context([device])
            self.queue = cl.CommandQueue(self.context)
            self._queue = self.queue.int_ptr
            self.library = _mtmc_opencl_library(cl)
            # PoCL's kernels run in this process, whatever an old version says of itself.
            self.takes_addresses = "Portable Computing Language" in platform.name or bool(
                device.svm_capabilities & cl.device_svm_capabilities.FINE_GRAIN_SYSTEM)
            options = [f"-D{name}={value}" for name, value in self._macros.items()]
            self._program = cl.Program(self.context, self._source).build(options)
        return cl.Kernel(self._program, kernel)


class _MtmcKernel:
    """A launch whose arguments lie ready, but for the tensors.

    `arguments` are bytes, or None where the launch gets a tensor."""

    def __init__(self, program, kernel, grid, block, shared_bytes, arguments):
        del shared_bytes  # Only CUDA has it.
        self._program = program
        self._kernel = kernel
        self._size = (_mtmc_ctypes.c_size_t * 3)(*[g * b for g, b in zip(grid, block)])
        self._block = (_mtmc_ctypes.c_size_t * 3)(*block)
        self._extents = _mtmc_ctypes.addressof(self._size), _mtmc_ctypes.addressof(self._block)
        self._arguments = arguments
        self._places = [at for at, value in enumerate(arguments) if value is None]
        self._function = self._handle = self._set_address = None
        # Those that the kernel has now.
        self._addresses = None

    def __call__(self, *tensors):
        """Enqueues the launch."""
        if self._function is None:
            self._load()
        program = self._program
        if not program.takes_addresses:
            return self._run_on_buffers(tensors)
        addresses = [tensor.data_ptr() for tensor in tensors]
        # PyTorch gives memory that was freed last, which is often what was used before.
        if addresses != self._addresses:
            self._set_addresses(addresses)
        self._enqueue(tensors)

    def _enqueue(self, tensors):
        status = self._program.enqueue(self._handle, *self._extents, tensors)
        if status:
            raise RuntimeError(f"launch of {self._kernel} failed: OpenCL status {status}")

    def _set_addresses(self, addresses):
        self._addresses = None
        for at, address in zip(self._places, addresses):
            status = self._set_address(self._handle, at, address)
            if status:
                raise RuntimeError(
                    f"argument {at} of {self._kernel} cannot be set: OpenCL status {status}")
        self._addresses = addresses

    def _load(self):
        function = self._program.function(self._kernel)
        for at, value in enumerate(self._arguments):
            if value is not None:
                function.set_arg(at, value)
        self._set_address = self._program.library.clSetKernelArgSVMPointer
        self._handle = function.int_ptr
        self._function = function

    def _run_on_buffers(self, tensors):
        """Runs to the end on a device that wants buffers."""
        import pyopencl as cl

        buffers = [self._share(cl, tensor) for tensor in tensors]
        for at, buffer in zip(self._places, buffers):
            self._function.set_arg(at, buffer)
        self._enqueue(buffers)
        for tensor, buffer in zip(tensors, buffers):
            if tensor.numel() > 0:
                # Mapping is how OpenCL hands memory that it was lent back to the host.
                view, _ = cl.enqueue_map_buffer(
                    self._program.queue, buffer, cl.map_flags.READ, 0, (tensor.nbytes,), "u1")
                view.base.release(self._program.queue)
        self._program.wait()

    def _share(self, cl, tensor):
        context = self._program.context
        if tensor.numel() == 0:
            return cl.Buffer(context, cl.mem_flags.READ_WRITE, 1)
        flags = cl.mem_flags.READ_WRITE | cl.mem_flags.USE_HOST_PTR
        memory = (_mtmc_ctypes.c_byte * tensor.nbytes).from_address(tensor.data_ptr())
        return cl.Buffer(context, flags, hostbuf=memory)


def _mtmc_opencl_library(cl):
    """What pyopencl calls itself, without its layers: they take longer than small kernels."""
    c_uint, c_void_p = _mtmc_ctypes.c_uint, _mtmc_ctypes.c_void_p
    library = _mtmc_ctypes.CDLL(cl._cl.__file__)
    library.clFinish.argtypes = [c_void_p]
    library.clSetKernelArgSVMPointer.argtypes = [c_void_p, c_uint, c_void_p]
    library.clEnqueueNDRangeKernel.argtypes = [
        c_void_p, c_void_p, c_uint, c_void_p, c_void_p, c_void_p, c_uint, c_void_p, c_void_p]
    return library
