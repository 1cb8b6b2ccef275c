# SPDX-License-Identifier: Apache-2.0
"""Legal inputs and parameters of a problem, drawn to tell programs apart.

Independent of the evaluator's own inputs. Shapes and types are the problem's; integers
stay within what the public seed shows, and floats that are never negative there stay so.
"""

import torch

# Draws of one problem: (inputs, parameters).
KINDS = (
    ("public", "public"),
    ("other", "public"),
    ("public", "other"),
    ("other", "other"),
    ("large", "public"),
    ("small", "other"),
    ("negated", "other"),
    ("ties", "public"),
    ("zero rows", "other"),
    ("constant rows", "public"),
    ("zero", "public"),
    ("spike", "public"),
    ("shifted up", "public"),
    ("shifted down", "public"),
    ("far up", "public"),
    ("far down", "public"),
    ("ramp", "other"),
    ("extremes", "public"),
    ("tiny rows", "public"),
    ("other", "ones"),
    ("other", "zeros"),
    ("special", "public"),
    ("special", "other"),
)

# Kinds of inputs in which elements may be equal.
TIED = ("ties", "zero rows", "constant rows", "tiny rows", "zero", "extremes", "special")

# What an operation on labels may leave out.
_IGNORED = -100


def draw(public, roles, kind, seed, ignores):
    """Values by name: `public` has those of the public seed, `roles` tells parameters
    and buffers (`weight`) from inputs; `ignores` says that labels may be left out."""
    generator = torch.Generator().manual_seed(seed)
    values = {}
    for name, value in public.items():
        is_parameter = roles[name] == "weight"
        values[name] = _one(value, kind[is_parameter], is_parameter, name, generator)
        if ignores and kind[0] == "special" and not (is_parameter or value.is_floating_point()):
            flat = values[name].reshape(-1)
            flat[:: max(flat.numel() // 4, 1)] = _IGNORED
    return values


def _one(value, kind, is_parameter, name, generator):
    if kind == "public":
        return value.clone()
    if value.dtype == torch.bool:
        return _mask(value, kind, generator)
    if not value.dtype.is_floating_point:
        return _integers(value, kind, is_parameter, generator)
    exact = value.double()
    drawn = _parameter(exact, kind, name, generator) if is_parameter else _floats(exact, kind, generator)
    if exact.numel() and exact.min() >= 0 and not is_parameter:
        # Never negative, and perhaps a share of one, by the example that is given.
        drawn = drawn.abs()
        if exact.max() <= 1:
            drawn = drawn.clamp(max=1.0)
        if exact.min() > 1e-3:
            drawn = drawn.clamp(min=float(exact.min()))
    return drawn.to(value.dtype)


def _normal(value, generator):
    return torch.randn(value.shape, generator=generator, dtype=torch.float64)


def _parameter(value, kind, name, generator):
    if kind in ("ones", "zeros"):
        is_variance = "var" in name
        return torch.ones_like(value) if kind == "ones" or is_variance else torch.zeros_like(value)
    spread = value.std() if value.numel() > 1 and value.std() > 0 else 0.5
    drawn = _normal(value, generator) * spread + value.mean()
    if "var" in name:
        drawn = drawn.abs() + 0.3
    return drawn


def _floats(value, kind, generator):
    spread = value.std() if value.numel() > 1 and value.std() > 0 else torch.tensor(1.0)
    drawn = _normal(value, generator) * spread + value.mean()
    if kind == "large":
        return drawn * 4
    if kind == "small":
        return drawn * 0.01
    if kind == "negated":
        return -drawn.abs()
    if kind == "ties":
        return (drawn * 2).round() / 2
    if kind == "zero":
        return torch.zeros_like(drawn)
    if kind in ("zero rows", "constant rows", "tiny rows") and drawn.dim():
        rows = drawn.reshape(-1, drawn.shape[-1])
        for row in range(0, rows.shape[0], 3):
            if kind == "zero rows":
                rows[row] = 0
            elif kind == "constant rows":
                rows[row] = rows[row, 0]
            else:
                rows[row] *= 1e-4
        return rows.reshape(drawn.shape)
    if kind == "spike" and drawn.numel():
        flat = drawn.reshape(-1)
        place = int(torch.randint(flat.numel(), (1,), generator=generator))
        flat[place] = spread * 40
        return flat.reshape(drawn.shape)
    if kind.startswith("shifted"):
        return drawn + spread * (12 if kind.endswith("up") else -12)
    if kind.startswith("far"):
        return drawn + spread * (300 if kind.endswith("up") else -300)
    if kind == "ramp" and drawn.numel():
        ramp = torch.linspace(-2, 2, drawn.numel(), dtype=torch.float64).reshape(drawn.shape)
        return ramp * spread + value.mean()
    if kind == "extremes" and drawn.numel():
        pick = torch.rand(drawn.shape, generator=generator)
        drawn = torch.where(pick < 0.2, value.min(), drawn)
        return torch.where(pick > 0.8, value.max(), drawn)
    if kind == "special":
        pick = torch.rand(drawn.shape, generator=generator)
        drawn = torch.where(pick < 0.1, torch.zeros_like(drawn), drawn)
        drawn = torch.where(pick > 0.9, drawn * 8, drawn)
        return torch.where((pick > 0.5) & (pick < 0.6), drawn * 1e-5, drawn)
    return drawn


def _mask(value, kind, generator):
    if kind in ("zero", "zeros", "zero rows", "negated"):
        return torch.zeros_like(value)
    if kind in ("ones", "large", "constant rows"):
        return torch.ones_like(value)
    return torch.rand(value.shape, generator=generator) > 0.4


def _integers(value, kind, is_parameter, generator):
    if not value.numel():
        return value.clone()
    low, high = int(value.min()), int(value.max())
    if is_parameter:
        # A counter of steps, or an index of a table.
        return value + 5 if value.dim() == 0 else value.clone()
    if kind in ("zero", "negated"):
        return torch.full_like(value, low)
    if kind in ("constant rows", "large"):
        return torch.full_like(value, high)
    if kind == "ties":
        return torch.full_like(value, (low + high) // 2)
    if kind == "ramp":
        return (torch.arange(value.numel()) % (high - low + 1) + low).reshape(value.shape).to(value.dtype)
    if kind == "shifted up":
        return value.sort(-1)[0] if value.dim() else value.clone()
    drawn = torch.randint(low, high + 1, value.shape, generator=generator).to(value.dtype)
    if kind == "spike" and low < 0 < high and value.dtype == torch.int64:
        return drawn * (1 << 33)
    return drawn
