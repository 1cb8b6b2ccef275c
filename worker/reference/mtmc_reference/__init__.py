# SPDX-License-Identifier: Apache-2.0
"""Reference process of the worker: it runs the user's PyTorch file.

The daemon talks to `python -m mtmc_reference` in lines of protobuf JSON
(`proto/mtmc/pipe/v1/reference.proto`). The package needs PyTorch, NumPy and the
standard library; on CUDA also `cuda.bindings`.

    protocol        lines in, lines out; no exception of the user ends the process
    session         one method per request
    loaded_problem  the problem that stays loaded between requests
    deadline        limits the time of the user's Python
    problem         imports the file and builds its model
    workload        draws inputs from secret seeds, distribution changes them
    execution       runs the model in a given precision, its state left unchanged
    arguments       nested arguments of `forward`, as a row of tensors and numbers
    attributes      state in plain attributes of modules
    exported        model to torch.export's program, or why not (where PyTorch traces
                    something else: mended; numbers taken from tensors: tensor_numbers)
    trace           that program to mtmc.v1.Graph (naming: values; what it says: graph_facts)
    expectation     what each workload's outputs must be
    oracle          the error that each precision class allows, rounding what other
                    orders of a sum add to it
    coarse          when strict FP32 is truth enough: eager is far further away than it
    parked          tensors that make room by lying on the host for a while
    peril           tells which run broke the device of a process before
    prepared        remembers expectations and shared inputs (memory_budget: how many)
    probes          zeros, mean, input and replay, which must not pass
    flaws           what is wrong with a problem, from its behaviour
    comparison      a candidate's outputs against an expectation
    compare         one tensor against another
    scan_kernels    the same on a GPU, with one read (cuda_kernel: NVRTC and launch)
    share           tensors in files or CUDA IPC memory
    cost            bytes and FLOPs that no implementation can avoid
    baseline        times eager and torch.compile
    places          lays the data of short models at changing addresses
    yardstick       a kernel of our own, which every process times
    host_lead       how long the device is kept busy while the host launches
    launch_counter  how many kernels a forward pass launches
    selftest, stopwatch, graph_of
                    programs: whether all of it works on a machine, where time goes, the
                    graph of a problem
"""
