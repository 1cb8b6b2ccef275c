# SPDX-License-Identifier: Apache-2.0
"""When a sample is dropped because the host was late, and when the host gets more time."""

from mtmc_reference.host_lead import HostLead


def test_one_late_sample_is_dropped_and_changes_nothing():
    lead = HostLead()
    before = lead.passes

    assert [lead.note(late) for late in (False, True, False, True)] == [False, True, False, True]
    assert lead.passes == before


def test_two_in_a_row_give_the_host_more_time():
    lead = HostLead()
    before = lead.passes

    assert lead.note(True) and lead.note(True)
    assert lead.passes == before + before // 2


def test_a_host_that_is_never_in_time_is_taken_as_it_is():
    lead = HostLead()

    assert sum(lead.note(True) for _ in range(100)) == 8
    assert not lead.note(True)
