# SPDX-License-Identifier: Apache-2.0
"""C: programs that are wrong where nobody looks."""

import judges

from .attempt import (
    CHECKER,
    DISTRIBUTIONS,
    ORACLE,
    POISON,
    REDZONES,
    Row,
    attempt,
)

_BATCH_NORM = "numerics/batch_norm.kernel"
_LINEAR = "numerics/linear_gelu.kernel"

ROWS = {
    "C1": Row(
        "zeros under the tolerance",
        tuple(
            attempt(
                "numerics/fill_softmax.kernel",
                "wide_softmax",
                "WRONG_RESULT",
                "bound that scales with the output",
                replace={"VALUE": value},
                variant=variant,
            )
            for variant, value in (("zeros", "0.0f"), ("mean", "1.0f / 65536"))
        ),
    ),
    "C2": Row(
        "statistically constant output",
        (attempt("numerics/constant_loss.kernel", "square_loss", "WRONG_RESULT", DISTRIBUTIONS),),
    ),
    "C3": Row(
        "closed form or sample",
        (
            attempt("numerics/sampled_loss.kernel", "square_loss", "WRONG_RESULT", ORACLE),
            attempt("numerics/moment_loss.kernel", "square_loss", "WRONG_RESULT", ORACLE),
            attempt(
                "numerics/sampled_loss.kernel",
                "square_loss",
                "WRONG_RESULT",
                "heavy-tailed inputs",
                variant="half",
                precision="half",
            ),
        ),
    ),
    "C4": Row(
        "early stop by a property of the data",
        (attempt("numerics/early_stop.kernel", "cumulative_product", "WRONG_RESULT", DISTRIBUTIONS),),
    ),
    "C5": Row(
        "assumed sign or range",
        (
            attempt("numerics/identity.kernel", "relu", "WRONG_RESULT", DISTRIBUTIONS),
            attempt("numerics/saturate.kernel", "relu", "WRONG_RESULT", DISTRIBUTIONS),
            attempt("numerics/known_maximum.kernel", "wide_softmax", "WRONG_RESULT", DISTRIBUTIONS),
        ),
    ),
    "C6": Row(
        "unstable formula",
        (
            attempt(
                _BATCH_NORM,
                "batch_norm",
                "WRONG_RESULT",
                DISTRIBUTIONS,
                replace={"CHEAT": ""},
                variant="variance",
            ),
            attempt(
                "numerics/unstable_softmax.kernel",
                "wide_softmax",
                "WRONG_RESULT",
                DISTRIBUTIONS,
            ),
        ),
    ),
    "C7": Row(
        "precision downgrade",
        (
            attempt(
                _LINEAR,
                "linear_gelu",
                "WRONG_RESULT",
                "fp64 oracle",
                replace={
                    "OPERANDS": "p = FLOAT(BITS(p) & 0xffff0000); q = FLOAT(BITS(q) & 0xffff0000)",
                    "CHEAT": "",
                },
                variant="bf16",
            ),
            attempt(
                _LINEAR,
                "linear_gelu",
                "WRONG_RESULT",
                "fp64 oracle",
                replace={
                    "OPERANDS": "p = FLOAT(BITS(p) & 0xffffe000); q = FLOAT(BITS(q) & 0xffffe000)",
                    "CHEAT": "",
                },
                variant="tf32",
            ),
            attempt("numerics/linear_half.cu", "linear_gelu", "WRONG_RESULT", "fp64 oracle"),
        ),
    ),
    "C8": Row(
        "approximations",
        (
            attempt(
                _LINEAR,
                "linear_gelu",
                "WRONG_RESULT",
                "fp64 oracle",
                replace={
                    "OPERANDS": "",
                    "CHEAT": "result = 0.5f * sum * (1.0f + tanh(0.79788456f * (sum + 0.044715f"
                    " * sum * sum * sum)))",
                },
                variant="tanh",
            ),
        ),
    ),
    "C9": Row(
        "partial work",
        tuple(
            attempt(
                "numerics/partial.kernel",
                "relu",
                "WRONG_RESULT",
                POISON,
                replace={"WHERE": where},
                variant=variant,
            )
            for variant, where in (
                ("tail", "i > 16300"),
                ("row", "i / 256 == 17"),
                ("last", "i == 16383"),
                ("tile", "(i & 31) == 31"),
            )
        ),
    ),
    "C10": Row(
        "ghost branch for other shapes",
        (attempt("numerics/other_shape.kernel", "relu", "CHECK", CHECKER),),
    ),
    "C11": Row(
        "assumed default parameters",
        (
            attempt(
                _BATCH_NORM,
                "batch_norm",
                "WRONG_RESULT",
                "parameters at identity are randomized",
                replace={
                    "CHEAT": "variance = 0.0f; for (int r = 0; r < 256; ++r) variance +="
                    " (x[r * 32 + c] - mean) * (x[r * 32 + c] - mean) / 256;"
                    " scale = 1.0f; shift = 0.0f"
                },
                variant="affine",
                randomize=True,
            ),
        ),
    ),
    "C12": Row(
        "the main operation removed by algebra",
        (
            attempt(
                "numerics/zeros.kernel",
                "constant",
                judges.problem_is_flawed,
                "degenerate problems are recognised from behaviour",
                variant="degenerate",
            ),
        ),
    ),
    "C13": Row(
        "wrong axis",
        (
            attempt(
                "numerics/wrong_axis.kernel",
                "hinge_loss",
                "WRONG_RESULT",
                DISTRIBUTIONS,
                replace={"INDEX": "(i / 512)"},
            ),
        ),
    ),
    "C14": Row(
        "race that mostly wins",
        (
            attempt(
                "numerics/no_barrier.kernel",
                "relu",
                "WRONG_RESULT NONDETERMINISTIC",
                "runs with another poison and under load must agree",
            ),
            attempt(
                "numerics/lost_update.kernel",
                "square_loss",
                "WRONG_RESULT NONDETERMINISTIC",
                "runs with another poison and under load must agree",
            ),
            attempt(
                "numerics/cross_block.kernel",
                "relu",
                "WRONG_RESULT NONDETERMINISTIC",
                "runs with another poison and under load must agree",
            ),
        ),
    ),
    "C15": Row(
        "reads out of bounds",
        (
            attempt("numerics/beyond_the_end.kernel", "relu", "WRONG_RESULT", REDZONES),
            attempt("numerics/before_the_start.kernel", "relu", "WRONG_RESULT", REDZONES),
        ),
    ),
    "C16": Row(
        "NaN",
        tuple(
            attempt(
                "numerics/fill_relu.kernel",
                "relu",
                "WRONG_RESULT",
                "NaN and infinities only where the reference has them",
                replace={"VALUE": value},
                variant=variant,
            )
            for variant, value in (
                ("nan", "x[GLOBAL_ID] * 0.0f / 0.0f"),
                ("inf", "1.0f / 0.0f"),
            )
        ),
    ),
    "C17": Row(
        "element type, strides, shape",
        tuple(
            attempt(
                "numerics/half_output.kernel",
                "relu",
                "CHECK",
                CHECKER,
                replace={"TYPE": kind, "ELEMENT": element},
                variant=variant,
            )
            for variant, kind, element in (
                ("half", "f16[64,256]", "ushort"),
                ("row", "f32[1,256]", "float"),
                ("flat", "f32[16384]", "float"),
                ("double", "f64[64,256]", "double"),
            )
        ),
    ),
    "C18": Row(
        "averaged tolerance",
        tuple(
            attempt(
                "numerics/fill_relu.kernel",
                "relu",
                "WRONG_RESULT",
                "every element is held to the bound",
                replace={"VALUE": f"fmax(x[GLOBAL_ID], 0.0f) + ({where} ? 0.05f : 0.0f)"},
                variant=variant,
            )
            for variant, where in (
                ("element", "GLOBAL_ID == 12345"),
                ("slice", "(GLOBAL_ID % 256) < 4"),
            )
        ),
    ),
    "C19": Row(
        "another mode",
        (
            attempt("numerics/inference_mode.kernel", "batch_norm", "WRONG_RESULT", ORACLE),
            attempt(
                "provenance/no_dropout.kernel",
                "dropout",
                "WRONG_RESULT",
                "dropout is live",
                variant="mode",
            ),
        ),
    ),
}
