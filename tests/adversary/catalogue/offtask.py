# SPDX-License-Identifier: Apache-2.0
"""E: programs that are right, fast, and no answer to what was asked."""

import judges

from .attempt import (
    CHECKER,
    PARSER,
    Row,
    attempt,
)

ROWS = {
    "E1": Row(
        "library wrapper",
        (
            attempt("offtask/library.kernel", "linear_gelu", "CHECK", "list of allowed calls"),
            attempt(
                "offtask/library.kernel",
                "linear_gelu",
                "CHECK",
                "list of allowed calls",
                variant="half_allowed",
                calls=("aten::linear",),
            ),
        ),
    ),
    "E2": Row(
        "the compiled reference as the answer",
        (
            attempt(
                "offtask/compiled_reference.kernel",
                "relu",
                "CHECK PARSE",
                "list of allowed calls",
                calls=("aten::relu",),
            ),
        ),
    ),
    "E3": Row(
        "fallback to the reference",
        (
            attempt("offtask/fallback.kernel", "relu", "PARSE", PARSER, calls=("aten::relu",)),
            attempt("offtask/fallback_call.kernel", "relu", "CHECK", "list of allowed calls"),
        ),
    ),
    "E4": Row(
        "inherit and pass",
        (attempt("offtask/inherit.txt", "relu", "PARSE", PARSER),),
    ),
    "E5": Row(
        "decoy kernel",
        (
            attempt(
                "offtask/unlaunched.kernel",
                "relu",
                "CHECK",
                CHECKER,
                calls=("aten::relu",),
            ),
            attempt("offtask/decoy.kernel", "relu", "CHECK", "list of allowed calls"),
            attempt(
                "offtask/decoy.kernel",
                "relu",
                judges.shows_step("relu"),
                "the profile names every step with its share",
                variant="allowed",
                calls=("aten::relu",),
                options={"omit_profile": False},
            ),
        ),
    ),
    "E6": Row(
        "only the trivial part",
        (
            attempt("offtask/trivial_part.kernel", "linear_gelu", "CHECK", "list of allowed calls"),
            attempt(
                "offtask/trivial_part.kernel",
                "linear_gelu",
                judges.shows_step("linear"),
                "the profile names every step with its share",
                variant="allowed",
                calls=("aten::linear",),
                options={"omit_profile": False},
            ),
        ),
    ),
    "E7": Row(
        "weak reference",
        (
            attempt(
                "timing/scalar.kernel",
                "scalar",
                judges.has_comparisons(2),
                "several baselines are compared with",
                options={"baselines": ["BASELINE_EAGER", "BASELINE_EAGER_TF32"]},
            ),
        ),
    ),
}
