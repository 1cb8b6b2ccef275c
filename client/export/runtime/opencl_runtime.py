# SPDX-License-Identifier: Apache-2.0
class _MtmcProgram:
    """Runs the program's plan on a CPU's OpenCL device, on the memory of PyTorch's own tensors.
    Safe to call from several threads: one at a time runs."""

    def __init__(self, source, macros, shapes, replays):
        del replays  # There are no graphs on a CPU.
        self._source = source
        self._macros = macros
        self._shapes = [shape for shape, _ in shapes]
        self._types = [data_type for _, data_type in shapes]
        self._lock = _mtmc_threading.Lock()
        self.context = self.queue = self._program = None

    def run(self, plan, inputs, targets):
        """The results of `plan(device, *inputs, *targets)`. `targets` are the tensors that the
        plan changes."""
        inputs = [tensor.contiguous() for tensor in inputs]
        _mtmc_check(inputs, self._shapes, self._types)
        with self._lock, _mtmc_torch.no_grad(), _mtmc_settings:
            return plan(_mtmc_torch.device("cpu"), *inputs, *targets)

    def function(self, kernel):
        import pyopencl as cl

        if self._program is None:
            devices = [d for p in cl.get_platforms() for d in p.get_devices()
                       if d.type & cl.device_type.CPU]
            if not devices:
                raise RuntimeError("no OpenCL device for the CPU; install pocl-opencl-icd")
            self.context = cl.Context(devices[:1])
            self.queue = cl.CommandQueue(self.context)
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
        self._size = tuple(blocks * threads for blocks, threads in zip(grid, block))
        self._block = tuple(block)
        self._arguments = arguments
        self._places = [at for at, value in enumerate(arguments) if value is None]
        self._function = None

    def __call__(self, *tensors):
        """Runs to the end."""
        import pyopencl as cl

        if self._function is None:
            self._function = self._program.function(self._kernel)
            for at, value in enumerate(self._arguments):
                if value is not None:
                    self._function.set_arg(at, value)
        buffers = [self._share(cl, tensor) for tensor in tensors]
        for at, buffer in zip(self._places, buffers):
            self._function.set_arg(at, buffer)
        queue = self._program.queue
        cl.enqueue_nd_range_kernel(queue, self._function, self._size, self._block)
        for tensor, buffer in zip(tensors, buffers):
            if tensor.numel() > 0:
                # Mapping is how OpenCL hands memory that it was lent back to the host.
                view, _ = cl.enqueue_map_buffer(queue, buffer, cl.map_flags.READ, 0,
                                                (tensor.numel() * tensor.element_size(),), "u1")
                view.base.release(queue)
        queue.finish()

    def _share(self, cl, tensor):
        context = self._program.context
        if tensor.numel() == 0:
            return cl.Buffer(context, cl.mem_flags.READ_WRITE, 1)
        flags = cl.mem_flags.READ_WRITE | cl.mem_flags.USE_HOST_PTR
        size = tensor.numel() * tensor.element_size()
        memory = (_mtmc_ctypes.c_byte * size).from_address(tensor.data_ptr())
        return cl.Buffer(context, flags, hostbuf=memory)
