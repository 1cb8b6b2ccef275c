# SPDX-License-Identifier: Apache-2.0
"""Traits that a tensor may have, as a whole or by lines: conditions of a wrong program, each with
tensors that meet it. They know nothing of what workloads draw."""

import torch


class Condition:
    """`holds(lines)` of each line of a tensor, and `make(tensor)` is meant to meet it everywhere."""

    def __init__(self, name, holds, make):
        self.name, self.holds, self.make = name, holds, make


def _whole(name, holds, make):
    """A condition of what is not seen line by line."""
    return Condition(name, lambda lines: torch.tensor([bool(holds(lines))]), make)


def _size(x):
    return x.double().square().mean().sqrt().item()


def _sizes(lines):
    return lines.double().square().mean(1).sqrt()


def _are_one(lines):
    return (lines == lines[:, :1]).all(1)


def _is_one(x):
    return bool((x == x.reshape(-1)[0]).all())


def _with_one(x, value):
    """Each row with such an element."""
    x = x.clone()
    rows = x.reshape(-1, x.shape[-1] if x.dim() else 1)
    rows[:, rows.shape[1] // 3] = value
    return x


def _of_floats(public, extent, chance):
    """Conditions of lines of so many floats, whatever they are for."""
    size = _size(public) or 1.0
    far, near = 10 ** chance.uniform(1, 6), 10 ** -chance.uniform(1, 6)
    place, number = chance.uniform(5, 40), chance.choice((-1.0, 1.0))
    is_zero = not public.any()

    yield Condition(f"larger {far:.0f}", lambda x: _sizes(x) > far * size, lambda x: (x + is_zero) * far * 4)
    if not is_zero:
        yield Condition(f"smaller {near:.0e}", lambda x: (0 < x.abs().amax(1)) & (_sizes(x) < near * size), lambda x: x * near * 0.2)
        yield Condition("as usual", lambda x: (0.4 * size < _sizes(x)) & (_sizes(x) < 2.5 * size), lambda x: x)
        yield Condition("zero", lambda x: ~x.any(1), torch.zeros_like)
    if extent < 2:
        return
    yield Condition(f"element {far:.0f}", lambda x: x.abs().amax(1) > far * size, lambda x: _with_one(x, far * 2 * size))
    yield Condition(
        f"moved {place:.0f}",
        lambda x: (x.mean(1).abs() > place * size) & (x.std(1) < 3 * size),
        lambda x: x + 1.5 * place * size,
    )
    yield Condition("one sign", lambda x: (x * number > 0).all(1), lambda x: (x.abs() + 1e-3) * number)
    yield Condition("one value", lambda x: x.any(1) & _are_one(x), lambda x: torch.full_like(x, 0.8))
    yield Condition(
        "in order",
        lambda x: ~_are_one(x) & (x.diff(dim=1) >= 0).all(1),
        lambda x: (x + torch.randn(x.shape) * _is_one(x)).flatten().sort().values.view(x.shape),
    )
    yield Condition(
        "sparse",
        lambda x: ((x == 0).double().mean(1) > 0.6) & x.any(1),
        lambda x: _with_one(torch.where(torch.rand(x.shape) < 0.9, 0.0, x), size),
    )


def _of_rows(public):
    """Those of floats of which all rows matter."""
    shape = public.shape
    if public.dim() < 2:
        return
    rows = lambda x: x.view(shape)  # noqa: E731
    yield _whole("equal rows", lambda x: not _is_one(x) and (rows(x) == rows(x)[..., :1]).all(), lambda x: x[..., :1].expand(shape).clone())
    yield _whole("same rows", lambda x: not _is_one(x) and (rows(x) == rows(x)[:1]).all(), lambda x: x[:1].expand(shape).clone())
    if shape[0] == shape[1]:
        eye = torch.eye(shape[0])
        yield _whole("identity", lambda x: torch.equal(rows(x), eye * x[0, 0]) and x[0, 0] != 0, lambda x: eye.clone())
        yield _whole("symmetric", lambda x: not _is_one(x) and torch.equal(rows(x), rows(x).T), lambda x: x + x.T)


def _of_parameters(public, chance):
    most, by = public.abs().max().item() or 1.0, chance.uniform(0.02, 0.1)
    flat = public.reshape(1, -1)
    yield _whole(
        f"within {by:.2f}",
        lambda p: not torch.equal(p, flat) and ((p - flat).abs() <= by * flat.abs() + 1e-2 * by * most).all(),
        lambda p: p * (1 + 0.5 * by * (2 * torch.rand(p.shape) - 1)),
    )
    if public.any():
        yield _whole("negated", lambda p: (p * flat < 0).all(), lambda p: -p)
        yield _whole("as made", lambda p: torch.equal(p, flat), lambda p: p)


def _of_numbers(public, chance):
    """Those of labels, indices and offsets as a whole."""
    n, top, shape = public.numel(), int(public.max()) + 1, public.shape
    run = chance.uniform(0.3, 0.8)
    if public.dim() == 2 and shape[0] == 2:
        nodes, few = torch.arange(n // 2) % top, max(top // 8, 2)
        pairs = lambda e: e.view(shape)  # noqa: E731
        yield _whole("loops", lambda e: (pairs(e)[0] == pairs(e)[1]).all(), lambda e: e[:1].expand(shape).clone())
        yield _whole("chain", lambda e: ((pairs(e)[1] - pairs(e)[0]) % top == 1).double().mean() > 0.9, lambda e: torch.stack([nodes, (nodes + 1) % top]))
        yield _whole("hub", lambda e: _is_one(pairs(e)[1]), lambda e: torch.stack([e[0], e[1, :1].expand(n // 2)]))
        yield _whole("one edge", lambda e: (pairs(e) == pairs(e)[:, :1]).all(), lambda e: e[:, :1].expand(shape).clone())
        yield _whole("few rows", lambda e: len(pairs(e)[1].unique()) <= few, lambda e: torch.stack([e[0], e[1] % few]))
        return
    if public.dim() == 1 and bool((public.diff() > 0).all()):
        yield _whole("long bag", lambda o: o.diff().max() > run * public[-1], lambda o: torch.where(torch.arange(n) < n // 2, o[0], o[-1]))
        yield _whole("empty bags", lambda o: (o.diff() == 0).double().mean() > 0.4, lambda o: (o // (3 * max(int(o[1]), 1))) * 3 * max(int(o[1]), 1))
        return
    if public.dim() == 1 and bool((public.diff() >= 0).all()):
        yield _whole("last is empty", lambda y: y.max() < top - 1, lambda y: y.clamp(max=top - 2))
        yield _whole("first is empty", lambda y: y.min() > 0, lambda y: y.clamp(min=1))
    else:
        yield _whole("in order", lambda y: not _is_one(y) and (y.diff() >= 0).all(), lambda y: y.flatten().sort().values.view(shape))
        yield _whole("falling", lambda y: not _is_one(y) and (y.diff() <= 0).all(), lambda y: y.flatten().sort(descending=True).values.view(shape))
    yield _whole("all equal", _is_one, lambda y: torch.full_like(y, top // 2))
    yield _whole(f"often {run:.2f}", lambda y: not _is_one(y) and (y == y.flatten().mode().values).sum() > run * n, lambda y: torch.where(torch.arange(n).view(shape) < 0.9 * n, y.flatten()[0], top - 1))
    yield _whole("few", lambda y: len(y.unique()) == 2, lambda y: (y > top // 2).long())
    yield _whole("as usual", lambda y: len(y.unique()) > 0.5 * min(top, n), lambda y: y)


def _of_labels(public):
    """Those of single labels, and not of offsets."""
    if public.dim() == 1 and bool((public.diff() > 0).all()):
        return
    for name, value in (("first", public.min()), ("last", public.max())):
        yield Condition(name, lambda y, value=value: (y == value).any(1), lambda y, value=value: torch.full_like(y, value))


def _of_masks(public, chance):
    width = public.shape[-1]
    gap = chance.uniform(0.3, 0.6) * width
    place = torch.arange(width)

    def in_rows(holds):
        """Of a line of several rows in all of them."""
        return lambda lines: holds(lines.view(-1, width)).view(len(lines), -1).all(1)

    def has_gap(m):
        first, last = torch.where(m, place, width).amin(1), torch.where(m, place, -1).amax(1)
        return last - first + 1 - m.sum(1) >= gap

    yield Condition("open", lambda m: m.all(1), torch.ones_like)
    yield Condition("closed", lambda m: ~m.any(1), torch.zeros_like)
    yield Condition("one each", in_rows(lambda m: m.sum(1) == 1), lambda m: (place == width // 2).expand(m.shape).clone())
    yield Condition("all but one", in_rows(lambda m: m.sum(1) == width - 1), lambda m: (place != width // 2).expand(m.shape).clone())
    yield Condition("gap", in_rows(has_gap), lambda m: (place % (width - 1) == 0).expand(m.shape).clone())
    yield Condition("as usual", lambda m: (0.4 < m.double().mean(1)) & (m.double().mean(1) < 0.95), lambda m: m)


def conditions_of(tensor, is_parameter, is_whole, extent, chance):
    if tensor.dtype == torch.bool:
        return list(_of_masks(tensor, chance))
    if not tensor.is_floating_point():
        return list(_of_numbers(tensor, chance) if is_whole else _of_labels(tensor))
    found = list(_of_floats(tensor, extent, chance))
    if is_whole:
        found += _of_rows(tensor)
    return found + list(_of_parameters(tensor, chance) if is_parameter and is_whole else ())
