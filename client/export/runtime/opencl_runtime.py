# SPDX-License-Identifier: Apache-2.0
class _MtmcProgram:
    """Compiles the device source once and runs its kernels on a CPU's OpenCL device,
    on the memory of PyTorch's own tensors."""

    def __init__(self, source, macros):
        self._source = source
        self._macros = macros
        self._kernels = {}
        self._program = None

    def launch(self, kernel, grid, block, shared_bytes, arguments, device):
        """Runs to the end. `arguments` are (NumPy type or None, value)."""
        import pyopencl as cl

        if self._program is None:
            self._build(cl)
        if kernel not in self._kernels:
            self._kernels[kernel] = cl.Kernel(self._program, kernel)
        buffers = [self._share(cl, v) if t is None else t(v) for t, v in arguments]
        size = tuple(blocks * threads for blocks, threads in zip(grid, block))
        self._kernels[kernel](self._queue, size, tuple(block), *buffers)
        for (scalar, value), buffer in zip(arguments, buffers):
            if scalar is None and value.numel() > 0:
                # Mapping is how OpenCL hands memory that it was lent back to the host.
                view, _ = cl.enqueue_map_buffer(
                    self._queue, buffer, cl.map_flags.READ, 0, (value.numel() * value.element_size(),), "u1")
                view.base.release(self._queue)
        self._queue.finish()

    def _share(self, cl, tensor):
        if tensor.numel() == 0:
            return cl.Buffer(self._context, cl.mem_flags.READ_WRITE, 1)
        flags = cl.mem_flags.READ_WRITE | cl.mem_flags.USE_HOST_PTR
        memory = (_mtmc_ctypes.c_byte * (tensor.numel() * tensor.element_size())).from_address(tensor.data_ptr())
        return cl.Buffer(self._context, flags, hostbuf=memory)

    def _build(self, cl):
        devices = [d for p in cl.get_platforms() for d in p.get_devices() if d.type & cl.device_type.CPU]
        if not devices:
            raise RuntimeError("no OpenCL device for the CPU; install pocl-opencl-icd")
        self._context = cl.Context(devices[:1])
        self._queue = cl.CommandQueue(self._context)
        options = [f"-D{name}={value}" for name, value in self._macros.items()]
        self._program = cl.Program(self._context, self._source).build(options)
