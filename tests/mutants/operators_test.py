# SPDX-License-Identifier: Apache-2.0
"""What the operators see of a program, and what they make of it."""

import operators
import program_text
import pytest

_TEXT = """//@ mtmc 1 opencl
//@ weight w f32[4]
//@ input x f32[2,4]
//@ output y f32[2]
//@ launch rows grid=(2) block=(1) args=(x, w, y)

// x[0] in a comment is no load.
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void rows(
    __global const float* restrict x,
    __global const float* restrict w,
    __global float* restrict y) {
  const int row = get_group_id(0);
  float sum = 0;
  for (int c = 0; c < 4; ++c) {
    sum += x[row * 4 + c] * w[c];  /* w[0] */
  }
  y[row] = sum;
}
"""
_PUBLIC = {"w": [1.0, 2.0, 3.0, 4.0], "x": [0.5] * 8}


def _mutants(operator):
    return {m.about: m.text for m in operators.mutants(_TEXT, _PUBLIC) if m.operator == operator}


def test_a_load_is_what_the_compiler_sees():
    loads = program_text.ProgramText(_TEXT).loads()
    assert [(load.tensor.name, load.index) for load in loads] == [("x", "row * 4 + c"), ("w", "c")]


def test_a_store_has_its_value():
    program = program_text.ProgramText(_TEXT)
    ((_, store, span),) = program.stores()
    assert (store.tensor.role, program.text[slice(*span)].strip()) == ("output", "sum")


def test_a_loop_has_limit_and_body():
    program = program_text.ProgramText(_TEXT)
    (loop,) = program.loops()
    assert (loop.variable, loop.limit, loop.step) == ("c", "4", "++c")
    assert "sum +=" in program.text[slice(*loop.body_span)]


def test_a_baked_parameter_leaves_plan_and_signature():
    text = _mutants("bake_parameter")["w stands in the text and is not passed"]
    assert "args=(x, y)" in text
    assert "//@ weight w" not in text
    assert "baked_w[4] = {1.0f, 2.0f, 3.0f, 4.0f}" in text
    assert "restrict w" not in text


def test_a_sampled_sum_is_scaled():
    text = _mutants("sample_reduction")["every other of c is reduced, and scaled"]
    assert "c += 2 * (1)" in text
    assert "sum += 2 * (x[row * 4 + c] * w[c]);" in text


def test_half_of_a_word_is_not_a_name():
    text = _TEXT.replace("rows", "x_rows").replace("sum", "x_sum")
    names = {load.name for load in program_text.ProgramText(text).loads()}
    assert names == {"x", "w"}


@pytest.mark.parametrize("operator", ["drop_input", "skip_small", "branch_on_poison", "memo"])
def test_mutants_of_an_operator_differ(operator):
    texts = list(_mutants(operator).values())
    assert texts
    assert len(set(texts)) == len(texts)
    assert _TEXT not in texts


def test_both_dialects_have_their_words():
    cuda = _TEXT.replace("1 opencl", "1 cuda")
    made = operators.mutants(cuda, _PUBLIC)
    assert any("__constant__ float baked_w" in mutant.text for mutant in made)
    assert not any("as_float((as_uint" in mutant.text for mutant in made)


def test_a_last_block_forgets_its_fence_or_is_told_too_early():
    text = _TEXT.replace(
        "  y[row] = sum;\n",
        "  y[row] = sum;\n  mem_fence(CLK_GLOBAL_MEM_FENCE);\n  int t = atomic_inc((__global int*)y + 1);\n",
    )
    made = {m.about: m.text for m in operators.mutants(text, _PUBLIC) if m.operator == "race"}

    assert "mem_fence" not in made["a fence is dropped"]
    early = made["others are told of a number before it is there"]
    assert early.index("atomic_inc") < early.index("y[row] = sum;")
