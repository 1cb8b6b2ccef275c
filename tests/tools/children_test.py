# SPDX-License-Identifier: Apache-2.0
"""Processes of scripts/benchmarking/children.py: alone, in turns, failing and dying."""

import os
import pathlib
import sys

_ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(_ROOT / "scripts" / "benchmarking"))

import children  # noqa: E402  (the path is set above)


def noted(path, word, rounds, fails_at=None, dies_at=None):
    """A generator that writes its word to a file each round."""
    for number in range(rounds):
        if number == fails_at:
            raise ValueError(f"no {word}")
        if number == dies_at:
            os._exit(7)
        with open(path, "a", encoding="utf-8") as file:
            file.write(word)
        yield
    return {"word": word, "process": os.getpid()}


def test_a_function_answers_from_a_process_of_its_own():
    answer = children.in_child(lambda x: {"twice": 2 * x, "process": os.getpid()}, 4)

    assert answer["twice"] == 8 and answer["process"] != os.getpid()


def test_what_is_raised_is_an_answer():
    answer = children.in_child(lambda: 1 / 0)

    assert not answer["ok"] and answer["failure"].startswith("ZeroDivisionError")


def test_turns_are_taken_forth_and_back(tmp_path):
    path = tmp_path / "order"

    answers = children.in_turns([(noted, (path, word, 3)) for word in "abc"], 3)

    assert path.read_text() == "abc" "cba" "abc"
    assert [answer["word"] for answer in answers] == ["a", "b", "c"]
    assert len({answer["process"] for answer in answers} | {os.getpid()}) == 4


def test_the_others_go_on_without_one_that_fails_or_dies(tmp_path):
    path = tmp_path / "order"
    timers = [(noted, (path, "a", 3, 1)), (noted, (path, "b", 3)), (noted, (path, "c", 3, None, 2))]

    failed, whole, dead = children.in_turns(timers, 3)

    assert failed["failure"] == "ValueError: no a"
    assert whole["word"] == "b" and path.read_text() == "abc" "cb" "b"
    assert dead["failure"] == "the check died with 7"


def test_a_timer_of_too_few_or_many_rounds_is_told(tmp_path):
    short, long = children.in_turns(
        [(noted, (tmp_path / "order", word, count)) for word, count in (("a", 1), ("b", 4))], 3)

    assert short["failure"] == "RuntimeError: the timer has other rounds than turns"
    assert long["failure"] == short["failure"]
