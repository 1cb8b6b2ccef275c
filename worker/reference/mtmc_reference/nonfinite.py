# SPDX-License-Identifier: Apache-2.0
"""Where outputs have NaN or infinities and their reference does not, or the reverse."""

import torch

from .compare import chunks

# (is NaN, is infinite) to words.
_WORDS = {(True, False): "NaN", (False, True): "an infinity", (False, False): "a finite number"}


def remark(names, actual, reference):
    """One sentence on the outputs that differ; empty where none does."""
    parts = []
    for name, y, r in zip(names, actual, reference):
        if not (y.is_floating_point() and r.is_floating_point()):
            continue
        count, most = _differences(y, r)
        if count:
            have, want = most
            parts.append(
                f"output {name}: {count} of {r.numel()} elements are other special values, "
                f"mostly {_WORDS[have]} where the reference has {_WORDS[want]}"
            )
    return "; ".join(parts)


def _differences(y, r):
    """(elements whose kind differs, the most frequent pair of kinds among them)."""
    counts = {}
    for _, y_part, r_part in chunks(y, r):
        kinds = [_kinds(y_part), _kinds(r_part)]
        wrong = kinds[0] != kinds[1]
        # The sign of an infinity is a part of it.
        wrong |= y_part.isinf() & r_part.isinf() & (y_part.signbit() != r_part.signbit())
        pairs = kinds[0][wrong] * 3 + kinds[1][wrong]
        for pair, count in enumerate(torch.bincount(pairs, minlength=9).tolist()):
            counts[pair] = counts.get(pair, 0) + count
    if not any(counts.values()):
        return 0, None
    have, want = divmod(max(counts, key=counts.get), 3)
    return sum(counts.values()), (_kind(have), _kind(want))


def _kinds(x):
    return x.isnan().long() + 2 * x.isinf()


def _kind(number):
    return number == 1, number == 2
