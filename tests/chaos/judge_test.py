# SPDX-License-Identifier: Apache-2.0
"""The judge finds each wrong in a history that was made up, and none in a good one."""

import copy

import history as histories
import judge as judges
import pytest

JOB = "projects/p/jobs/j"


def candidate(trial, **fields):
    given = {"state": "EVALUATED", "tag": f"t{trial}", "is_correct": True, "program": f"p{trial}"} | fields
    return judges.CandidateEnd(name=f"{JOB}/candidates/c{trial}", trial=trial, **given)


def result(trial, tag=None, sent=1.0, acknowledged=2.0):
    return histories.Result(JOB, f"{JOB}/candidates/c{trial}", tag or f"t{trial}", 100, sent, acknowledged)


@pytest.fixture
def story():
    """A job of two trials that all went well for: history and end."""
    history = histories.History()
    history.add_job(histories.JobSeen(JOB, "p", max_trials=2, max_tokens=50))
    events = [(1, "a"), (2, "b"), (3, "c")]
    history.watches = [histories.Watch(JOB, copy.copy(events), breaks=2)]
    history.results = [result(trial) for trial in range(3)]
    history.open_jobs = [("p", 1), ("p", 2)]
    final = judges.Final(
        jobs={JOB: judges.JobEnd(JOB, "SUCCEEDED", trials=2, tokens=40, device_us=300, end_reason="TRIALS",
                                 best=f"{JOB}/candidates/c1")},
        candidates={JOB: [candidate(0), candidate(1, tokens=20), candidate(2, tokens=20)]},
        events={JOB: events},
        quotas={"p": judges.QuotaEnd(used={"open_jobs": 0, "tokens": 40, "device_us": 300},
                                     reserved={"tokens": 0, "device_us": 0},
                                     limits={"open_jobs": 2, "tokens": 100, "device_us": 1000})},
        artifacts={"d": "ok"}, served_tokens=60,
    )  # fmt: skip
    return history, final


def found(story):
    return judges.judge(*story)


def test_a_history_without_a_fault_is_not_blamed(story):
    assert found(story) == []


def without_a_correct_candidate(history, final):
    job = final.jobs[JOB]
    job.state, job.failure, job.best = "FAILED", "NO_CORRECT_CANDIDATE", ""
    for one in final.candidates[JOB]:
        one.is_correct = False


def test_a_job_may_fail_of_which_workers_called_each_program_wrong(story):
    without_a_correct_candidate(*story)

    assert found(story) == []


# Each damages a story; and words of what must be found.
def wrong_by_a_real_worker(history, final):
    without_a_correct_candidate(history, final)
    final.candidates[JOB][1].tag = ""


def judged_by_nobody(history, final):
    without_a_correct_candidate(history, final)
    final.candidates[JOB] = []


def lost_job(history, final):
    del final.jobs[JOB]


def open_job(history, final):
    final.jobs[JOB].state = "RUNNING"


def cancelled_by_nobody(history, final):
    final.jobs[JOB].state = "CANCELLED"


def failed_without_reason(history, final):
    final.jobs[JOB].state = "FAILED"


def failed_by_a_fault(history, final):
    final.jobs[JOB].state, final.jobs[JOB].failure = "FAILED", "ACTIONS_NOT_LISTED"


def won_by_nothing(history, final):
    final.candidates[JOB][1].is_correct = False


def lost_event(history, final):
    del history.watches[0].events[1]


def lost_last_event(history, final):
    del history.watches[0].events[2]


def doubled_event(history, final):
    history.watches[0].events.insert(1, (1, "a"))


def disordered_events(history, final):
    history.watches[0].events.reverse()


def changed_event(history, final):
    history.watches[0].events[1] = (2, "other")


def gap_in_the_log(history, final):
    del final.events[JOB][1]


def lost_evaluation(history, final):
    final.candidates[JOB][2].state = "PENDING"


def lost_candidate(history, final):
    del final.candidates[JOB][2]


def doubled_evaluation(history, final):
    final.candidates[JOB][2].tag = "t1"


def done_again(history, final):
    history.results.append(result(2, tag="again", sent=3.0, acknowledged=4.0))
    final.candidates[JOB][2].tag = "again"


def called_off_long_after(history, final):
    history.jobs[JOB].cancelled = 9.0
    final.jobs[JOB].end_reason = "CANCELLED"
    final.candidates[JOB][2].state = "CANCELLED"


def called_off_by_a_good_end(history, final):
    final.candidates[JOB][2].state = "CANCELLED"


def trial_counted_twice(history, final):
    final.jobs[JOB].trials = 3


def over_budget(history, final):
    history.jobs[JOB].max_trials = 1


def over_tokens(history, final):
    history.jobs[JOB].max_tokens = 39


def tokens_counted_twice(history, final):
    final.served_tokens = 20


def tokens_forgotten(history, final):
    final.jobs[JOB].tokens = 20


def device_time_counted_twice(history, final):
    final.jobs[JOB].device_us = 400


def device_time_forgotten(history, final):
    final.jobs[JOB].device_us = 200


def over_quota(history, final):
    final.quotas["p"].limits["device_us"] = 299


def too_many_open(history, final):
    history.open_jobs.append(("p", 3))


def quota_held(history, final):
    final.quotas["p"].reserved["tokens"] = 7


def quota_counted_wrong(history, final):
    final.quotas["p"].used["device_us"] = 200


def damaged_artifact(history, final):
    final.artifacts["d"] = "has other bytes"


def surprise(history, final):
    history.surprises.append("INTERNAL")


def difference(history, final):
    final.differences.append("the jobs of p")


DAMAGES = {
    lost_job: "lost job", open_job: "job does not end", cancelled_by_nobody: "improper end",
    failed_without_reason: "improper end", failed_by_a_fault: "improper end", won_by_nothing: "improper end",
    wrong_by_a_real_worker: "improper end", judged_by_nobody: "improper end", lost_event: "events missed",
    lost_last_event: "events missed", doubled_event: "events twice", disordered_events: "events disordered",
    changed_event: "events changed", gap_in_the_log: "event log with gaps", lost_evaluation: "lost evaluation",
    lost_candidate: "lost evaluation", doubled_evaluation: "doubled evaluation", done_again: "lost evaluation",
    called_off_long_after: "lost evaluation", called_off_by_a_good_end: "lost evaluation",
    trial_counted_twice: "trials counted wrong", over_budget: "budget exceeded", over_tokens: "budget exceeded",
    tokens_counted_twice: "tokens counted twice", tokens_forgotten: "tokens not counted",
    device_time_counted_twice: "device time counted twice", device_time_forgotten: "device time not counted",
    over_quota: "quota exceeded", too_many_open: "quota exceeded", quota_held: "quota held",
    quota_counted_wrong: "quota counted wrong", damaged_artifact: "artifact", surprise: "surprise",
    difference: "difference",
}  # fmt: skip


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_a_damage_is_found(story, damage):
    damage(*story)
    assert any(text.startswith(DAMAGES[damage]) for text in found(story)), found(story)


def test_a_result_that_came_after_another_worker_had_begun_to_tell_may_be_dropped(story):
    history, final = story
    history.results.append(result(2, tag="other", sent=1.5, acknowledged=1.9))
    final.candidates[JOB][2].tag = "other"
    assert found(story) == []


def test_a_result_of_a_candidate_that_was_called_off_may_be_dropped(story):
    history, final = story
    history.jobs[JOB].cancelled = 1.5
    final.candidates[JOB][2] = candidate(2, state="CANCELLED", tag="", tokens=20)
    final.jobs[JOB].end_reason = "CANCELLED"
    assert found(story) == []


def test_what_is_known_by_an_earlier_candidate_costs_no_trial(story):
    history, final = story
    final.candidates[JOB].append(candidate(3, tag="t1", is_cached=True, program="p1"))
    assert found(story) == []
