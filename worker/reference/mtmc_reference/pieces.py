# SPDX-License-Identifier: Apache-2.0
"""How a tensor is changed in place: in pieces of bounded size, by rows, until it is another one."""

import torch

# Elements of a small tensor, and how often it is drawn until it is another one.
SMALL, _TRIES = 64, 8
# Elements that are drawn at once.
CHUNK = 1 << 22
# Vectors are changed in so many stretches.
_STRETCHES = 8
# Members of small groups, in turn: what divides by a size less one, or three, is not defined; of
# one alone whoever looks at a part of a row sees nothing.
_MEMBERS = (1, 2, 1, 3, 1, 5, 1, 4, 1, 7, 1, 6)


def changed(way, tensor, generator):
    """Changes a tensor in place in a way; a small one, of which chance may leave all as it
    is, is tried again."""
    if tensor.numel() > SMALL:
        way(tensor, generator)
        return
    before = tensor.detach().clone()
    for _ in range(_TRIES):
        way(tensor, generator)
        if not torch.equal(tensor, before):
            return


def pieces(tensor):
    """The tensor's rows along its last axis, or stretches of a vector, as views of it in
    chunks of bounded size."""
    flat = tensor.view(-1)
    extent = tensor.shape[-1] if tensor.dim() > 1 else max(tensor.numel() // _STRETCHES, 1)
    count = flat.numel() // extent
    rows = flat[: count * extent].view(count, extent)
    return rows.split(max(CHUNK // extent, 1))


def some_of_each(shape, generator):
    """A few elements of each row, as many as `_MEMBERS` has in turn, at any places."""
    count, extent = shape
    device = generator.device
    start = torch.randint(len(_MEMBERS), (1,), generator=generator, device=device)
    turn = (torch.arange(count, device=device) + start) % len(_MEMBERS)
    members = torch.tensor(_MEMBERS, device=device)[turn].unsqueeze(1)
    order = torch.rand(shape, generator=generator, device=device).argsort(dim=1).argsort(dim=1)
    return order < members
