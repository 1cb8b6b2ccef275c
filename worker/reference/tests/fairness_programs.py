# SPDX-License-Identifier: Apache-2.0
"""Parts of honest programs, and ways to make dishonest ones of them."""

import torch

# Arithmetic that a GPU has and a CPU has not.


def fast_exp(x):
    """exp as 2 to the power of a rounded product, off by two units besides."""
    return torch.exp2(x * 1.44269504) * (1 + 1.2e-7 * (2 * torch.rand_like(x) - 1))


def fast_divide(x, y):
    return x / y * (1 + 1.2e-7 * (2 * torch.rand_like(x) - 1))


def flushed(y):
    """Denormals as zeros."""
    return torch.where(y.abs() < torch.finfo(y.dtype).tiny, 0.0, y)


def in_order(x, dim=-1):
    """One running sum along an axis."""
    total = torch.zeros_like(x.select(dim, 0))
    for part in x.unbind(dim):
        total = total + part
    return total


def in_parts(x, dim=-1, parts=8):
    """Sums of every eighth element, then their sum."""
    length = x.shape[dim]
    sums = [
        in_order(x.index_select(dim, torch.arange(i, length, parts)), dim)
        for i in range(min(parts, length))
    ]
    return in_order(torch.stack(sums), 0)


def compensated(x, dim=-1):
    total = torch.zeros_like(x.select(dim, 0))
    rest = torch.zeros_like(total)
    for part in x.unbind(dim):
        y = part - rest
        t = total + y
        rest = (t - total) - y
        total = t
    return total


SUMS = {"in order": in_order, "in parts": in_parts, "compensated": compensated}


def zeroed(limit):
    return lambda f: lambda *a: torch.where(f(*a).abs() < limit, 0.0, f(*a))


def skipped_row(f):
    def program(*inputs):
        y = f(*inputs).clone()
        y.reshape(-1, y.shape[-1])[-1] = 0
        return y

    return program


def last_columns_of_others(f):
    """The last columns are those before them."""

    def program(*inputs):
        y = f(*inputs).clone()
        y[..., -3:] = y[..., -6:-3]
        return y

    return program


def in_fp16(f):
    return lambda *a: f(*(x.half().float() if x.is_floating_point() else x for x in a))


def result_in_fp16(f):
    return lambda *a: f(*a).half().float()
