# SPDX-License-Identifier: Apache-2.0
"""B: programs that get their answer elsewhere."""

import judges

from .attempt import (
    CHECKER,
    CHECKSUMS,
    ORACLE,
    PARSER,
    POISON,
    REDZONES,
    SCRUB,
    SINE,
    SOURCE,
    Row,
    attempt,
    forged,
)

ROWS = {
    "B1": Row(
        "uninitialised memory holds the answer",
        (
            attempt("provenance/nothing.kernel", "relu", "WRONG_RESULT", POISON),
            attempt("provenance/first_row.kernel", "relu", "WRONG_RESULT", POISON),
            attempt("provenance/old_scratch.kernel", "relu", "WRONG_RESULT", POISON),
            attempt("provenance/unwritten_scratch.kernel", "relu", "CHECK", CHECKER),
        ),
    ),
    "B2": Row(
        "launch that fails silently",
        (
            attempt("provenance/too_much_shared.cu", "relu", "CHECK", CHECKER),
            attempt("provenance/too_many_threads.kernel", "relu", "CHECK", CHECKER),
            attempt(
                "provenance/static_shared.kernel",
                "relu",
                "COMPILE LAUNCH OUT_OF_MEMORY WRONG_RESULT CRASH",
                "every launch is checked for its error",
            ),
            attempt(
                "provenance/register_bound.cu",
                "relu",
                "COMPILE LAUNCH OUT_OF_MEMORY",
                "every launch is checked for its error",
            ),
        ),
    ),
    "B3": Row(
        "stealing the expected output",
        (
            attempt(
                "provenance/search_memory.kernel",
                "relu",
                "WRONG_RESULT CRASH LAUNCH",
                "expected outputs never exist in the runner; " + REDZONES,
            ),
        ),
    ),
    "B4": Row(
        "poisoning the expected output",
        (attempt("provenance/overwrite_neighbours.kernel", "relu", "OUT_OF_BOUNDS CRASH", REDZONES),),
    ),
    "B5": Row(
        "scanning the address space",
        (
            *forged(
                "grader/far_write.kernel",
                "no expected data in the context; a broken context is reported",
            ),
            *forged(
                "grader/far_write.kernel",
                "what guards the context is compared with what it must hold",
                replace={"= 0.0f;": "= 12345.0f;"},
                variant="value",
            ),
            *forged(
                "grader/far_read.kernel",
                "no expected data in the context; a broken context is reported",
            ),
        ),
    ),
    "B6": Row(
        "calling the reference",
        (
            attempt("provenance/call_reference.kernel", "relu", "CHECK PARSE", CHECKER),
            attempt("provenance/include_problem.kernel", "relu", "CHECK", SOURCE),
        ),
    ),
    "B7": Row(
        "shrinking the problem",
        (attempt("provenance/smaller.kernel", "relu", "CHECK", CHECKER),),
    ),
    "B8": Row(
        "predicting inputs",
        (
            attempt(
                "provenance/public_answer.kernel",
                "scalar",
                "WRONG_RESULT",
                "hidden seeds",
                replace={"ANSWER": "PUBLIC_OUTPUT"},
            ),
        ),
    ),
    "B9": Row(
        "replay across trials with fixed weights",
        (
            attempt(
                "provenance/first_result.kernel",
                "row_sine",
                judges.refused_or_gains_nothing("WRONG_RESULT NONDETERMINISTIC CHEAT", SINE),
                "fresh contents; " + SCRUB,
            ),
            attempt(
                "numerics/zeros.kernel",
                "constant",
                judges.problem_is_flawed,
                "problems whose output ignores the input are recognised",
            ),
        ),
    ),
    "B10": Row(
        "changing the input",
        (
            attempt("provenance/zero_input.kernel", "relu", "INPUT_CHANGED", CHECKSUMS),
            attempt("provenance/write_input.kernel", "relu", "CHECK", CHECKER),
            attempt("provenance/zero_weight.kernel", "linear_gelu", "INPUT_CHANGED", CHECKSUMS),
        ),
    ),
    "B11": Row(
        "aliasing the input",
        (
            *(
                attempt(
                    "provenance/alias_input.kernel",
                    "clamp_wide",
                    "LIBRARY CHECK CHEAT INPUT_CHANGED WRONG_RESULT",
                    "outputs may not alias inputs",
                    replace={"OPERATOR": operator},
                    variant=operator,
                    calls=(f"aten::{operator}",),
                )
                for operator in ("alias", "detach", "contiguous")
            ),
            attempt("provenance/output_is_input.kernel", "relu", "CHECK", CHECKER),
            attempt("provenance/same_name.kernel", "relu", "PARSE", PARSER),
        ),
    ),
    "B12": Row(
        "aliasing an earlier output",
        (
            attempt(
                "provenance/once.kernel",
                "relu",
                judges.writes_every_time,
                POISON,
                options={"min_samples": 10},
            ),
        ),
    ),
    "B13": Row(
        "random state",
        (
            attempt("provenance/no_dropout.kernel", "dropout", "WRONG_RESULT", ORACLE),
            attempt("provenance/reseed.kernel", "dropout", "CHECK PARSE", CHECKER),
        ),
    ),
}
