# SPDX-License-Identifier: Apache-2.0
"""What the coordinators and the database say in the end, as values for the judge."""

import hashlib
import itertools
import time

import clients as users
import contract
import judge as judges
import stack as stacks
import world as worlds

C = stacks.CONTRACT
STATE = C.Candidate.State
CORRECT = C.Evaluation.Verdict.Value("VERDICT_CORRECT")
SECONDS = 30
CRASH = C.Failure.Kind.Value("KIND_CRASH")


def ask(client, service, method, **fields):
    """An answer, of a coordinator whose store may not have come back from the last fault."""
    deadline = time.monotonic() + SECONDS
    while True:
        try:
            return client.call(service, method, **fields)
        except contract.CallError as error:
            if error.code.name != "UNAVAILABLE" or time.monotonic() > deadline:
                raise
        time.sleep(0.2)


def pages(client, service, method, field, **fields):
    token = ""
    while True:
        answer = ask(client, service, method, page_size=500, page_token=token, **fields)
        yield from getattr(answer, field)
        token = answer.next_page_token
        if not token:
            return


def job_end(job):
    return judges.JobEnd(
        name=job.name, state=C.Job.State.Name(job.state).removeprefix("STATE_"), trials=job.budget_use.trials,
        tokens=job.budget_use.tokens, device_us=job.budget_use.device_time.ToMicroseconds(),
        end_reason=C.Job.EndReason.Name(job.end_reason).removeprefix("END_REASON_"),
        failure=job.failure.reason, best=job.best_candidate,
    )  # fmt: skip


def candidate_end(candidate):
    tag = candidate.evaluation.profile.summary
    return judges.CandidateEnd(
        name=candidate.name, trial=candidate.trial, state=STATE.Name(candidate.state).removeprefix("STATE_"),
        tag=tag if tag.startswith("chaos ") else "", is_cached=candidate.evaluation.is_cached,
        is_correct=candidate.evaluation.verdict == CORRECT,
        is_crash=candidate.evaluation.failure.kind == CRASH,
        failure=candidate.evaluation.failure.message[:500], program=candidate.program.sha256,
        tokens=candidate.token_use.input_tokens + candidate.token_use.output_tokens,
    )  # fmt: skip


def set_quotas(client, open_jobs):
    """`open_jobs` by project."""
    for project, limits in users.PROJECTS.items():
        quota = C.Quota(max_open_jobs=open_jobs[project], max_tokens=limits["tokens"])
        quota.max_device_time.FromMicroseconds(limits["device_us"])
        ask(client, "QuotaService", "UpdateQuota", name=f"projects/{project}/quota", quota=quota,
                    update_mask={"paths": ["max_open_jobs", "max_tokens", "max_device_time"]})  # fmt: skip


def quota_end(client, project):
    quota = ask(client, "QuotaService", "GetQuota", name=f"projects/{project}/quota").quota
    return judges.QuotaEnd(
        used={"open_jobs": quota.use.open_jobs, "tokens": quota.use.tokens,
              "device_us": quota.use.device_time.ToMicroseconds()},
        reserved={"tokens": quota.use.reserved_tokens,
                  "device_us": quota.use.reserved_device_time.ToMicroseconds()},
        limits={"open_jobs": quota.max_open_jobs, "tokens": quota.max_tokens,
                "device_us": quota.max_device_time.ToMicroseconds()},
    )  # fmt: skip


def artifact_state(client, digest, size):
    try:
        parts = client.stream("ArtifactService", "DownloadArtifact", seconds=20,
                              digest=C.Digest(sha256=digest, size_bytes=size))  # fmt: skip
        found = hashlib.sha256(b"".join(part.chunk for part in parts)).hexdigest()
    except contract.CallError as error:
        return f"cannot be read: {error}"
    return "ok" if found == digest else "has other bytes"


def gather(world, history):
    """A Final; asks every coordinator, and the database itself."""
    clients = [worlds.Client(world.endpoint(name)) for name in world.names]
    final = judges.Final(served_tokens=world.model.served * worlds.TOKENS_OF_REPLY)
    artifacts = set(history.uploads)
    for project in users.PROJECTS:
        told = [{job.name: job_end(job) for job in pages(client, "JobService", "ListJobs", "jobs",
                                                         parent=f"projects/{project}")} for client in clients]  # fmt: skip
        final.jobs |= told[0]
        if any(other != told[0] for other in told[1:]):
            final.differences.append(f"the jobs of {project}")
        final.quotas[project] = quota_end(clients[0], project)
    turns = itertools.cycle(clients)
    for name in final.jobs:
        logs = [[(event.sequence, users.digest_of(event)) for event in client.events(name, seconds=20)]
                if final.jobs[name].state in judges.ENDED else [] for client in clients]  # fmt: skip
        final.events[name] = logs[0]
        if any(log != logs[0] for log in logs[1:]):
            final.differences.append(f"the events of {name}")
        listed = list(pages(next(turns), "CandidateService", "ListCandidates", "candidates", parent=name))
        final.candidates[name] = [candidate_end(candidate) for candidate in listed]
        artifacts |= {(c.program.sha256, c.program.size_bytes) for c in listed if c.program.sha256}
    for (digest, size), client in zip(sorted(artifacts), turns):
        final.artifacts[digest] = artifact_state(client, digest, size)
    for client in clients:
        client.close()
    _compare_with_database(world, final)
    return final


def _compare_with_database(world, final):
    rows = dict(world.sql("SELECT name, last_event FROM jobs"))
    if rows.keys() != final.jobs.keys():
        final.differences.append("the jobs of the database")
    counts = world.sql("SELECT job, COUNT(*), MIN(sequence), MAX(sequence) FROM events GROUP BY job")
    for job, count, first, last in counts:
        if not (count == last == rows.get(job) and first == "1") or int(count) != len(final.events.get(job, ())):
            final.differences.append(f"the events of {job} in the database: {count} rows, {first} to {last}")
    left = world.sql("SELECT COUNT(*) FROM reservations")[0][0]
    if left != "0":
        final.differences.append(f"{left} reservations are left in the database")
