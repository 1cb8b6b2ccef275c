# SPDX-License-Identifier: Apache-2.0
"""Says what is wrong between what clients saw (history.py) and what the store holds in
the end. Pure: it asks nobody, so that its own tests can show it any history."""

import collections
import dataclasses

ENDED = ("SUCCEEDED", "FAILED", "CANCELLED")
# What may make a job fail here: every problem can be served, and all faults pass.
FAILURES = ("QUOTA_EXCEEDED",)
# Ends that call off what workers do.
CALLING_OFF = ("CANCELLED", "QUOTA", "WALL_TIME", "FAILED")
# From the answer to a worker until the search has heard it, when the coordinator is slow.
HEARD_SECONDS = 3


@dataclasses.dataclass
class JobEnd:
    """A job as the coordinators tell it in the end."""

    name: str
    state: str
    trials: int = 0
    tokens: int = 0
    device_us: int = 0
    end_reason: str = ""
    failure: str = ""
    best: str = ""


@dataclasses.dataclass
class CandidateEnd:
    name: str
    trial: int
    state: str
    # The tag in its evaluation; empty for one that no simulated worker made.
    tag: str = ""
    is_cached: bool = False
    is_correct: bool = False
    is_crash: bool = False
    # What its evaluation says is wrong.
    failure: str = ""
    program: str = ""
    tokens: int = 0


@dataclasses.dataclass
class QuotaEnd:
    used: dict
    reserved: dict
    limits: dict


@dataclasses.dataclass
class Final:
    """`jobs` by name; `candidates` and `events` by job; `quotas` by project; `artifacts` by
    digest with "ok" or what is wrong; `served_tokens` as the language model counted.
    `differences` are answers in which coordinators, or the database, differ."""

    jobs: dict = dataclasses.field(default_factory=dict)
    candidates: dict = dataclasses.field(default_factory=dict)
    events: dict = dataclasses.field(default_factory=dict)
    quotas: dict = dataclasses.field(default_factory=dict)
    artifacts: dict = dataclasses.field(default_factory=dict)
    served_tokens: int = None
    differences: list = dataclasses.field(default_factory=list)


def judge(history, final):
    """Violations as texts; none if it survived."""
    found = [f"surprise: {text}" for text in history.surprises]
    found += [f"difference: {text}" for text in final.differences]
    for check in (_jobs, _events, _results, _trials, _tokens, _device_time, _quotas, _artifacts):
        found += check(history, final)
    return found


def notes(history, final):
    """What is allowed, and worth a look, with how often it was."""
    first_ack = {}
    for result in history.results:
        if result.acknowledged is not None:
            first_ack[result.candidate] = min(result.acknowledged, first_ack.get(result.candidate, float("inf")))
    tags = {candidate.tag for listed in final.candidates.values() for candidate in listed}
    states = collections.Counter(job.state for job in final.jobs.values())
    return {
        "jobs": dict(states),
        "end_reasons": dict(collections.Counter(job.end_reason for job in final.jobs.values())),
        "failures": dict(collections.Counter(job.failure for job in final.jobs.values() if job.failure)),
        "results": len(history.results),
        "acknowledged": sum(result.acknowledged is not None for result in history.results),
        "acknowledged_and_dropped": sum(
            result.acknowledged is not None and result.tag not in tags for result in history.results
        ),
        "called_off": sum(c.state == "CANCELLED" for listed in final.candidates.values() for c in listed),
        "leased_after_finish": sum(grant.called > first_ack.get(grant.candidate, float("inf"))
                                   for grant in history.grants),
        "given_up": sum(c.is_crash for listed in final.candidates.values() for c in listed),
        "watches": len(history.watches),
        "broken_watches": sum(watch.breaks for watch in history.watches),
        "events": sum(len(watch.events) for watch in history.watches),
    }  # fmt: skip


def _jobs(history, final):
    for name, seen in history.jobs.items():
        job = final.jobs.get(name)
        if job is None:
            yield f"lost job: {name} was created and is not there"
        elif job.state not in ENDED:
            yield f"job does not end: {name} is {job.state}"
        elif job.state == "CANCELLED" and seen.cancelled is None:
            yield f"improper end: nobody cancelled {name}"
        elif job.state == "FAILED" and not job.failure:
            yield f"improper end: {name} failed without a reason"
        elif job.failure == "NO_CORRECT_CANDIDATE" and _are_all_wrong(final.candidates.get(name, ())):
            continue
        elif job.end_reason == "FAILED" or (job.failure and job.failure not in FAILURES):
            told = sorted({c.failure for c in final.candidates.get(name, ()) if c.failure})
            yield f"improper end: {name} was ended by a fault that passed, {job.failure} {told}"
        elif job.state == "SUCCEEDED":
            best = [c for c in final.candidates.get(name, ()) if c.name == job.best]
            if not best or not best[0].is_correct:
                yield f"improper end: {name} succeeded by {job.best or 'nothing'}, which is not correct"
    for name in final.jobs.keys() - history.jobs.keys():
        yield f"job nobody created: {name}"


def _are_all_wrong(candidates):
    """Whether simulated workers, which call one program of eight wrong, judged so all that was judged."""
    judged = [candidate for candidate in candidates if candidate.state == "EVALUATED"]
    return bool(judged) and all(c.tag and not c.is_correct and not c.is_crash for c in judged)


def _events(history, final):
    for job, events in final.events.items():
        if [sequence for sequence, _ in events] != list(range(1, len(events) + 1)):
            yield f"event log with gaps: {job}"
    for watch in history.watches:
        kept = final.events.get(watch.job, [])
        if watch.events == kept:
            continue
        sequences = [sequence for sequence, _ in watch.events]
        expected = range(1, len(kept) + 1)
        twice = [s for s, times in collections.Counter(sequences).items() if times > 1]
        missed = sorted(set(expected) - set(sequences))
        if twice:
            yield f"events twice: {watch.job} {twice[:5]}"
        if missed:
            yield f"events missed: {watch.job} {missed[:5]} of {len(kept)}"
        if sequences != sorted(sequences):
            yield f"events disordered: {watch.job}"
        if not twice and not missed:
            changed = [s for (s, seen), (_, now) in zip(watch.events, kept) if seen != now]
            if changed:
                yield f"events changed after they were seen: {watch.job} {changed[:5]}"


def _results(history, final):
    """Each acknowledged evaluation is in its job once, or lost to one that was there first."""
    by_name = {c.name: c for listed in final.candidates.values() for c in listed}
    by_tag = {result.tag: result for result in history.results}
    owners = collections.Counter(c.tag for c in by_name.values() if c.tag and not c.is_cached)
    for tag, times in owners.items():
        if times > 1:
            yield f"doubled evaluation: {tag} is in {times} candidates"
        if tag not in by_tag:
            yield f"evaluation from nowhere: {tag}"
    for result in history.results:
        if result.acknowledged is None:
            continue
        candidate = by_name.get(result.candidate)
        if candidate is None:
            yield f"lost evaluation: {result.candidate}, {result.tag} acknowledged, has no candidate"
        elif candidate.state == "CANCELLED":
            yield from _called_off(history, final, result)
        elif candidate.state != "EVALUATED":
            yield f"lost evaluation: {result.candidate} is {candidate.state}, {result.tag} was acknowledged"
        elif candidate.tag != result.tag:
            other = by_tag.get(candidate.tag)
            if other is None or other.candidate != result.candidate:
                yield f"lost evaluation: {result.candidate} has {candidate.tag!r}, {result.tag} was acknowledged"
            elif other.sent > result.acknowledged:
                yield (f"lost evaluation: {result.candidate}: {result.tag} was acknowledged "
                       f"{other.sent - result.acknowledged:.2f} s before {other.tag}, which is kept, was sent")  # fmt: skip


def _called_off(history, final, result):
    """The end of a job may have met a result halfway; not one that was there long before."""
    seen, job = history.jobs.get(result.job), final.jobs.get(result.job)
    if job is not None and job.end_reason not in CALLING_OFF:
        yield f"lost evaluation: {result.candidate} was called off by {job.end_reason}, {result.tag} was acknowledged"
    elif seen is not None and seen.cancelled is not None and seen.cancelled > result.acknowledged + HEARD_SECONDS:
        yield (f"lost evaluation: {result.tag} of {result.candidate} was acknowledged "
               f"{seen.cancelled - result.acknowledged:.1f} s before the job was cancelled")  # fmt: skip


def _costly(candidates):
    """Candidates that cost a trial: not those whose program the job had judged before."""
    judged, costly = set(), []
    for candidate in sorted(candidates, key=lambda c: c.trial):
        if candidate.trial > 0 and not (candidate.is_cached and candidate.program in judged):
            costly.append(candidate)
        if candidate.state == "EVALUATED":
            judged.add(candidate.program)
    return costly


def _trials(history, final):
    for name, job in final.jobs.items():
        candidates = final.candidates.get(name, [])
        if len({c.trial for c in candidates}) != len(candidates):
            yield f"two candidates of one trial: {name}"
        counted = len(_costly(candidates))
        if job.trials != counted:
            yield f"trials counted wrong: {name} says {job.trials}, and has {counted}"
        limit = history.jobs[name].max_trials if name in history.jobs else 0
        if limit and job.trials > limit:
            yield f"budget exceeded: {name} used {job.trials} of {limit} trials"


def _tokens(history, final):
    for name, job in final.jobs.items():
        seen = history.jobs.get(name)
        if seen and seen.max_tokens and job.tokens > seen.max_tokens:
            yield f"budget exceeded: {name} used {job.tokens} of {seen.max_tokens} tokens"
        told = sum(c.tokens for c in final.candidates.get(name, ()))
        if told > job.tokens:
            yield f"tokens not counted: {name} says {job.tokens}, its candidates used {told}"
    counted = sum(job.tokens for job in final.jobs.values())
    if final.served_tokens is not None and counted > final.served_tokens:
        yield f"tokens counted twice: jobs say {counted}, the model served {final.served_tokens}"


def _device_time(history, final):
    spent = {result.tag: result.device_us for result in history.results}
    for name, job in final.jobs.items():
        own = [c for c in final.candidates.get(name, ()) if c.state == "EVALUATED" and not c.is_cached]
        if any(c.tag not in spent for c in own):
            continue  # By a real worker, which tells nobody else.
        told = sum(spent[c.tag] for c in own)
        if job.device_us < told:
            yield f"device time not counted: {name} says {job.device_us} us, its workers {told} us"
        # What the end called off is counted by a clock that nobody else has seen.
        if job.device_us > told and job.end_reason in ("TRIALS", "STOP", "PATIENCE", "NO_ACTION"):
            yield f"device time counted twice: {name} says {job.device_us} us, its workers {told} us"


def _quotas(history, final):
    for project, count in history.open_jobs:
        limit = final.quotas[project].limits.get("open_jobs") if project in final.quotas else None
        if limit is not None and count > limit:
            yield f"quota exceeded: {project} had {count} open jobs of {limit}"
    for project, quota in final.quotas.items():
        for kind, limit in quota.limits.items():
            if quota.used.get(kind, 0) > limit:
                yield f"quota exceeded: {project} used {quota.used[kind]} of {limit} {kind}"
        for kind, amount in quota.reserved.items():
            if amount:
                yield f"quota held by nobody: {project} has {amount} {kind} reserved, and every job has ended"
        if quota.used.get("open_jobs"):
            yield f"quota held by nobody: {project} counts {quota.used['open_jobs']} open jobs"
        jobs = [final.jobs[name] for name, seen in history.jobs.items()
                if seen.project == project and name in final.jobs]  # fmt: skip
        for kind, total in (("tokens", sum(job.tokens for job in jobs)),
                            ("device_us", sum(job.device_us for job in jobs))):  # fmt: skip
            # What an evaluation takes beyond its reservation while nobody can call it off is not
            # counted (docs/quotas.md); a reservation is shorter only where the limit is near.
            if quota.used.get(kind, 0) != total and not total > quota.used.get(kind, 0) == quota.limits.get(kind):
                yield f"quota counted wrong: {project} says {quota.used.get(kind, 0)} {kind}, its jobs {total}"


def _artifacts(history, final):
    for digest, state in final.artifacts.items():
        if state != "ok":
            yield f"artifact: {digest[:12]} {state}"
