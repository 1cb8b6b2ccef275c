# SPDX-License-Identifier: Apache-2.0
"""A plan is the same for a seed, and each part is hit by one fault at a time."""

import plan as plans


def test_a_seed_gives_the_same_plan_and_another_one_another():
    assert plans.draw_plan("7", 200, 30) == plans.draw_plan("7", 200, 30)
    assert plans.draw_plan("7", 200, 30) != plans.draw_plan("8", 200, 30)


def test_a_longer_plan_begins_as_a_shorter_one():
    assert plans.draw_plan("7", 200, 30)[:50] == plans.draw_plan("7", 50, 30)


def test_faults_that_overlap_have_different_targets():
    until = {}
    for fault in plans.draw_plan("7", 1000, 30):
        part = "a disk" if fault.kind == "disk full" else fault.target
        assert until.get(part, 0) <= fault.start
        until[part] = fault.start + fault.seconds


def test_a_long_plan_has_every_kind_and_a_short_one_says_what_it_lacks():
    assert plans.never_drawn(plans.draw_plan("7", 1000, 30)) == []
    short = plans.draw_plan("7", 3, 30)
    assert len(plans.never_drawn(short)) == len(plans.WEIGHTS) - len({fault.kind for fault in short})
