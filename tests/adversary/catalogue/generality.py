# SPDX-License-Identifier: Apache-2.0
"""F: programs that are right for the values of the file and wrong for a user's, or that
would know whether they are judged or timed.
"""

import judges

from .attempt import CONTENTS, ORACLE, POISON, SCRUB, SINE, Row, attempt

_INTEGERS = "workloads with other integers and masks"
_PARAMETERS = "workloads with other parameters and buffers"
_ROWS = "workloads with special rows"
_ENDS = "workloads at the ends of ranges and at the bounds of operators"
_FAR = "workloads with parameters far from the constructor's"
_PRUNED = "workloads with pruned and minute parameters"
_ANY_SIZE = "workloads with elements of any size"
_SCALES = "workloads that are minute, or far on one side"
_SMALL = "small elements are compared with their neighbours"
_UNREAD = "plan checker: what the graph needs is passed"
_WRONG = "WRONG_RESULT"
_UNREADABLE = "CHECK WRONG_RESULT"


def _of(name, problem, defence, kinds=_WRONG, **fields):
    return attempt(f"generality/{name}.kernel", problem, kinds, defence, **fields)


def _each(name, problem, defence, variants, kinds=_WRONG, **fields):
    """An attempt for each variant, which has the words that it replaces."""
    return tuple(
        _of(name, problem, defence, kinds, variant=variant, replace=replace, **fields)
        for variant, replace in variants.items()
    )


_MASK = "GLOBAL const unsigned char* mask,"
_LOOKS = {
    "equal_words": "seen[0] == seen[1]",
    "not_a_number": "(seen[0] & 0x7F800000u) == 0x7F800000u",
    "all_ones": "seen[0] == 0xFFFFFFFFu",
    "huge": "(seen[0] >> 24) == 0x7Bu",
    "beyond_as_inside": "seen[16] == seen[0]",
    "beyond_not_as_inside": "seen[16] != seen[0]",
    "finite": "(seen[0] & 0x7F800000u) != 0x7F800000u",
    "odd": "(seen[0] & 1u) != 0u",
}

ROWS = {
    "F1": Row("labels of the file", (_of("baked_labels", "labelled", _INTEGERS),)),
    "F2": Row(
        "a mask of the file",
        _each(
            "causal_mask",
            "masked_softmax",
            _INTEGERS + "; " + _UNREAD,
            {
                "passed": {"PASSED": "x, mask", "PARAMETER": _MASK, "TOUCH": "+ 0 * mask[0]"},
                "unread": {"PASSED": "x", "PARAMETER": "", "TOUCH": ""},
            },
            _UNREADABLE,
        )
        + (_of("no_empty_rows", "masked_softmax", _INTEGERS),),
    ),
    "F3": Row("a first state that is dropped", (_of("zero_state", "state", _INTEGERS),)),
    "F4": Row("offsets that are assumed", (_of("equal_segments", "segments", _INTEGERS),)),
    "F5": Row("indices that are assumed", (_of("own_order", "lookup", _INTEGERS),)),
    "F6": Row(
        "a filter of the file",
        _each(
            "mean_filter",
            "box_filter",
            _PARAMETERS,
            {"constant": {"SCALE": "0.2f + 0.0f * weight[0]"}, "first": {"SCALE": "weight[0]"}},
        ),
    ),
    "F7": Row(
        "a slope of the file",
        _each("known_slope", "prelu", _PARAMETERS, {"constant": {"SLOPE": "(0.25f + 0.0f * slope[0])"}}),
    ),
    "F8": Row("statistics of the file", (_of("new_statistics", "evaluated_norm", _PARAMETERS),)),
    "F9": Row(
        "scale and shift of the file",
        _each(
            "no_affine",
            "affine_norm",
            _PARAMETERS,
            {
                "neither": {"SCALE": "", "SHIFT": ""},
                "scale": {"SCALE": "weight[LOCAL_ID] *", "SHIFT": ""},
                "shift": {"SCALE": "", "SHIFT": "+ bias[LOCAL_ID]"},
                "first": {"SCALE": "weight[0] *", "SHIFT": "+ bias[0]"},
            },
        ),
    ),
    "F10": Row("a table of the file", (_of("baked_table", "embedding", _PARAMETERS),)),
    "F11": Row(
        "inputs that are not read",
        (
            _of("unread", "residual", _UNREAD, _UNREADABLE),
            _of("one_of_it", "residual", _INTEGERS),
        ),
    ),
    "F12": Row("rows that are zero", (_of("no_zero_rows", "unit_rows", _ROWS),)),
    "F13": Row("ties", (_of("one_maximum", "count_maxima", _ROWS),)),
    "F14": Row(
        "bounds that no input of the file reaches",
        _each(
            "no_bound",
            "bounded_shares",
            _ENDS,
            {
                "neither": {"BOUNDED": "x[GLOBAL_ID]"},
                "above": {"BOUNDED": "fmin(x[GLOBAL_ID], 3.0f)"},
                "below": {"BOUNDED": "fmax(x[GLOBAL_ID], -3.0f)"},
                "positive": {"BOUNDED": "fmin(fmax(x[GLOBAL_ID], 0.0f), 3.0f)"},
            },
        )
        + _each(
            "no_end_of_logs",
            "shares",
            _ENDS,
            {"none": {"LEAST": ""}, "another": {"LEAST": "+ 1e-12f"}},
        ),
    ),
    "F15": Row(
        "guards that tiny values alone meet",
        _each(
            "large_guard",
            "small_rows",
            _ROWS,
            {"none": {"GUARD": "0.0f"}, "larger": {"GUARD": "1e-8f"}},
        ),
    ),
    "F16": Row(
        "one spike, or all far away",
        (
            _of("flat_log_sum", "log_sum", ORACLE + "; " + _ROWS),
            _of("bounded_softmax", "softmax_rows", ORACLE + "; a far offset"),
        ),
    ),
    "F17": Row(
        "timing that is told from judging by memory",
        _each(
            "looks_at_output",
            "row_sine",
            POISON + ", with other random words each time, in the output and beyond it",
            {name: {"LOOKS": condition} for name, condition in _LOOKS.items()},
            judges.refused_or_gains_nothing("WRONG_RESULT NONDETERMINISTIC CHEAT", SINE),
            options={"min_samples": 20},
        ),
    ),
    "F18": Row(
        "the public seed, known by its first element",
        (
            _of(
                "public_short_cut",
                "row_sine",
                "the public seed is not among the timed sets",
                judges.refused_or_gains_nothing("WRONG_RESULT CHEAT", SINE),
                only=("opencl",),
            ),
        ),
    ),
    "F19": Row(
        "a third of all executions replayed",
        (
            _of(
                "one_in_three",
                "row_sine",
                CONTENTS + "; " + SCRUB,
                judges.refused_or_gains_nothing("WRONG_RESULT NONDETERMINISTIC CHEAT", SINE),
                options={"min_samples": 60},
            ),
        ),
    ),
    "F20": Row(
        "a loss of some rows",
        _each(
            "sampled_rows",
            "square_loss",
            "small outputs are bounded relative to themselves",
            {"two": {"EVERY": "2"}, "eight": {"EVERY": "8"}},
        ),
    ),
    "F21": Row(
        "shares below the tolerance",
        _each(
            "no_small_shares",
            "softmax_rows",
            _SMALL,
            {"4": {"FLOOR": "1e-4f"}, "5": {"FLOOR": "1e-5f"}},
        )
        + _each("no_small_masked_shares", "masked_softmax", _SMALL, {"4": {"FLOOR": "1e-4f"}}),
    ),
    "F22": Row(
        "doubles in floats",
        (_of("narrow_sum", "double_sum", "float64 has its own tolerance"),),
    ),
    "F23": Row(
        "the best of coarse scores",
        (_of("coarse_scores", "best_class", "a picked index is judged by its exact score"),),
    ),
    "F24": Row("labels to be ignored", (_of("ignored_label", "labelled", _INTEGERS),)),
    "F25": Row(
        "numbers of fewer bits",
        _each(
            "whole_bytes",
            "whole_numbers",
            _INTEGERS,
            {"byte": {"TYPE": "signed char"}, "int": {"TYPE": "int"}},
        )
        + _each(
            "short_numbers",
            "long_numbers",
            _INTEGERS,
            {
                "byte": {"TYPE": "signed char"},
                "short": {"TYPE": "short"},
                "int": {"TYPE": "int"},
                "float": {"TYPE": "float"},
            },
        ),
    ),
    "F26": Row(
        "parameters near those of the file",
        _each("far_gate", "tanh_gate", _FAR, {"tanh": {"FORMULA": "1 + g - g * g * g / 3"}})
        + _each("far_gate", "softplus_gate", _FAR, {"softplus": {"FORMULA": "log(1 + exp(g))"}})
        + _each("far_gate", "clipped_gate", _FAR, {"clip": {"FORMULA": "g"}})
        + _each(
            "zero_points",
            "zero_points",
            _FAR,
            {"byte": {"TYPE": "signed char"}, "short": {"TYPE": "short"}},
        ),
    ),
    "F27": Row(
        "what is small where all is small",
        _each("cancelled", "expm1", _SCALES, {"expm1": {"FORMULA": "exp(v) - 1"}})
        + _each("cancelled", "erfc", _SCALES, {"erfc": {"FORMULA": "1 - erf(v)"}}),
    ),
    "F28": Row("one exception in a row", (_of("half_a_row", "any_of_row", _INTEGERS),)),
    "F29": Row(
        "weights as a new module has them",
        _each(
            "trusting_product",
            "plain_product",
            _PRUNED,
            {
                "minute": {"TRUST": "if (fabs(q) < 1e-6f) q = 0.0f"},
                "rows": {"TRUST": "if (w[column * 64] == 0.0f) q = 0.0f"},
                "inputs": {"TRUST": "if (w[k] == 0.0f) q = 0.0f"},
                "blocks": {"TRUST": "if (w[column * 64 + k / 16 * 16] == 0.0f) q = 0.0f"},
            },
        ),
    ),
    "F30": Row(
        "a bound that no input was thought to reach",
        _each(
            "trusting_product",
            "plain_product",
            _ANY_SIZE,
            {"million": {"TRUST": "p = fmin(fmax(p, -1e6f), 1e6f)"}},
        )
        + (_of("int_floor", "floors", _ANY_SIZE),),
    ),
}
