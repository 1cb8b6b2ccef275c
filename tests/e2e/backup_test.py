# SPDX-License-Identifier: Apache-2.0
"""The commands of docs/backup.md, run while jobs are open: they go on elsewhere. And a
database of the first version, with an open job, is brought up to date; what another
release has brought up to date is left alone."""

import base64
import contextlib
import pathlib
import re
import shutil
import sqlite3
import subprocess
import time

import kept
import outside
import processes
import stack as stacks

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs/backup.md"
SUCCEEDED = stacks.CONTRACT.Job.State.Value("STATE_SUCCEEDED")
TRIALS = 6


def commands(word):
    """The only block of commands of the page with `word` in it."""
    found = [text for text in re.findall(r"^```sh\n(.*?)^```$", PAGE.read_text(), re.M | re.S) if word in text]
    assert len(found) == 1, f"{len(found)} blocks have '{word}'"
    return found[0]


def run(block, **variables):
    variables = {name: str(value) for name, value in variables.items()}
    done = subprocess.run(["bash", "-eu", "-c", block], env={"PATH": "/usr/bin:/bin", **variables},
                          capture_output=True, text=True, check=False)  # fmt: skip
    assert done.returncode == 0, done.stderr


def state_of(service, job):
    """What must be the same after a restore: each evaluation by its candidate."""
    listed = service.client.call("CandidateService", "ListCandidates", parent=job, page_size=500)
    return {c.name: c.evaluation for c in listed.candidates if c.HasField("evaluation")}


def difference(before, after):
    """The names of the fields that two evaluations do not have alike."""
    if after is None:
        return "it is gone"
    fields = {field.name for message in (before, after) for field, _ in message.ListFields()}
    return sorted(name for name in fields if getattr(before, name) != getattr(after, name))


def begin(service):
    """A job that is under way and one that waits; the evaluations that the first has."""
    jobs = [service.start_job(number=0, trials=TRIALS).name]
    service.await_evaluated(jobs[0], 2)
    jobs.append(service.start_job(number=1, trials=TRIALS).name)
    return jobs, state_of(service, jobs[0])


def check_that_they_go_on(service, jobs, evaluated):
    """To their end, and nothing that was evaluated is evaluated again."""
    for job in jobs:
        assert service.await_job(job, kept.JOB_SECONDS).state == SUCCEEDED, service.failures(job)
        assert service.num_evaluated(job) > 0
    after = state_of(service, jobs[0])
    # The best one may have been confirmed since.
    confirmed = stacks.confirmed(service.event_log(jobs[0]))
    assert evaluated.keys() <= after.keys()
    changed = {name: difference(evaluated[name], after[name]) for name in evaluated.keys() - set(confirmed)}
    assert not any(changed.values()), changed
    sequences = [event.sequence for event in service.event_log(jobs[0])]
    assert sequences == list(range(1, len(sequences) + 1))


def test_a_backup_of_sqlite_goes_on_elsewhere(tmp_path):
    data, backup, elsewhere = tmp_path / "data", tmp_path / "backup", tmp_path / "elsewhere"
    backup.mkdir()
    with kept.Service(tmp_path / "a", "--data-dir", data) as service:
        jobs, evaluated = begin(service)
        run(commands("VACUUM INTO"), data=data, backup=backup)
        assert service.job(jobs[1]).state not in kept.ENDED
    # The whole host is lost.
    shutil.rmtree(data)

    run(commands('mkdir -p "$data"'), data=elsewhere, backup=backup)

    with kept.Service(tmp_path / "b", "--data-dir", elsewhere) as service:
        check_that_they_go_on(service, jobs, evaluated)


def test_a_backup_of_postgresql_goes_on_elsewhere(tmp_path):
    backup, artifacts, elsewhere = tmp_path / "backup", tmp_path / "artifacts", tmp_path / "elsewhere"
    backup.mkdir()
    with outside.Postgres(tmp_path) as postgres:
        flags = ("--takeover-after-ms", "1000", "--artifacts")
        first = ("--store", postgres.address(), *flags, artifacts)
        with kept.Service(tmp_path / "a", *first) as service:
            jobs, evaluated = begin(service)
            run(commands("pg_dump"), store=postgres.address(), backup=backup, artifacts=artifacts)
            assert service.job(jobs[1]).state not in kept.ENDED
        shutil.rmtree(artifacts)
        subprocess.run(["createdb", "-h", postgres.folder, "-U", "mtmc", "restored"], check=True)

        run(commands("pg_restore"), store=postgres.address("restored"), backup=backup, artifacts=elsewhere)

        second = ("--store", postgres.address("restored"), *flags, elsewhere)
        with kept.Service(tmp_path / "b", *second) as service:
            check_that_they_go_on(service, jobs, evaluated)


# The first version of server/store/sql_schema.cc.
FIRST_VERSION = """
CREATE TABLE jobs (name TEXT PRIMARY KEY, project TEXT NOT NULL, position BIGINT NOT NULL,
  state BIGINT NOT NULL, request_id TEXT, last_event BIGINT NOT NULL, inspection_key TEXT NOT NULL,
  body TEXT NOT NULL);
CREATE UNIQUE INDEX jobs_by_position ON jobs (position);
CREATE UNIQUE INDEX jobs_by_request ON jobs (project, request_id);
CREATE TABLE candidates (name TEXT PRIMARY KEY, job TEXT NOT NULL, trial BIGINT NOT NULL, body TEXT NOT NULL);
CREATE UNIQUE INDEX candidates_by_trial ON candidates (job, trial);
CREATE TABLE events (job TEXT NOT NULL, sequence BIGINT NOT NULL, body TEXT NOT NULL, PRIMARY KEY (job, sequence));
CREATE TABLE evaluations (fingerprint TEXT PRIMARY KEY, candidate TEXT NOT NULL, body TEXT NOT NULL);
CREATE TABLE inspections (key TEXT PRIMARY KEY, body TEXT NOT NULL);
CREATE TABLE leases (id TEXT PRIMARY KEY, work TEXT NOT NULL, job TEXT NOT NULL, candidate TEXT NOT NULL,
  worker TEXT NOT NULL, instance TEXT NOT NULL, losses BIGINT NOT NULL, crashes BIGINT NOT NULL,
  is_lost BIGINT NOT NULL);
CREATE INDEX leases_by_work ON leases (work);
CREATE TABLE workers (name TEXT PRIMARY KEY, is_draining BIGINT NOT NULL, body TEXT NOT NULL);
CREATE TABLE schema_version (version BIGINT NOT NULL);
INSERT INTO schema_version (version) VALUES (1);
"""


def version_of(path):
    with contextlib.closing(sqlite3.connect(path)) as database:
        return database.execute("SELECT MAX(version) FROM schema_version").fetchone()[0]


# The candidates of a newer database are events of it.
CANDIDATES = """SELECT c.name, e.body FROM {newer}.candidates c
  JOIN {newer}.events e ON e.job = c.job AND e.sequence = c.event"""


def body_of(told):
    """The record of its own that a candidate had before."""
    candidate = stacks.CONTRACT.JobEvent.FromString(base64.b64decode(told)).candidate
    return base64.b64encode(candidate.SerializeToString()).decode()


def give_bodies(database):
    for name, told in database.execute(CANDIDATES.format(newer="newer")).fetchall():
        database.execute("UPDATE main.candidates SET body = ? WHERE name = ?", (body_of(told), name))


def take_back(path):
    """Makes the database one of the first version, with the same rows."""
    old = path.with_suffix(".old")
    with contextlib.closing(sqlite3.connect(old, isolation_level=None)) as database:
        database.executescript(FIRST_VERSION)
        database.execute("ATTACH ? AS newer", (str(path),))
        tables = database.execute("SELECT name FROM main.sqlite_master WHERE type = 'table'").fetchall()
        for (table,) in tables:
            if table == "schema_version":
                continue
            columns = ", ".join(row[1] for row in database.execute(f"PRAGMA main.table_info({table})"))
            database.execute(f"INSERT INTO main.{table} ({columns}) SELECT {columns} FROM newer.{table}")
        give_bodies(database)
    for suffix in ("", "-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)
    old.rename(path)


def test_a_database_of_the_first_version_is_upgraded_with_jobs_open(tmp_path):
    data = tmp_path / "data"
    with kept.Service(tmp_path / "a", "--data-dir", data) as service:
        jobs, evaluated = begin(service)
    newest = version_of(data / "mtmc.db")
    take_back(data / "mtmc.db")
    assert version_of(data / "mtmc.db") == 1 < newest

    with kept.Service(tmp_path / "a", "--data-dir", data) as service:
        check_that_they_go_on(service, jobs, evaluated)
    assert version_of(data / "mtmc.db") == newest


def columns_of(schema):
    """Columns of each table that a schema makes, but for the one with its version."""
    tables = re.findall(r"CREATE TABLE (\w+) \((.*?)\);", schema, re.S)
    parts = {name: re.split(r",\s*", text) for name, text in tables if name != "schema_version"}
    return {
        name: [part.split()[0] for part in columns if re.match(r"\w+ (TEXT|BIGINT)", part)]
        for name, columns in parts.items()
    }


def take_back_postgresql(postgres):
    """As take_back: in a schema beside, which then takes the place of the newer one."""
    told = [line.split("|") for line in postgres.ask(CANDIDATES.format(newer="public")).splitlines()]
    copies = [
        f"INSERT INTO first.{table} ({', '.join(columns)}) SELECT {', '.join(columns)} FROM public.{table};"
        for table, columns in columns_of(FIRST_VERSION).items()
    ]
    bodies = [f"UPDATE first.candidates SET body = '{body_of(event)}' WHERE name = '{name}';" for name, event in told]
    assert len(copies) == 7 and bodies
    postgres.ask(
        "\n".join([
            "BEGIN; CREATE SCHEMA first; SET LOCAL search_path TO first;", FIRST_VERSION, *copies, *bodies,
            "DROP SCHEMA public CASCADE; ALTER SCHEMA first RENAME TO public; COMMIT;",
        ])
    )  # fmt: skip


def version_in(postgres):
    return int(postgres.ask("SELECT MAX(version) FROM schema_version"))


def test_a_postgresql_database_of_the_first_version_is_upgraded_with_jobs_open(tmp_path):
    with outside.Postgres(tmp_path) as postgres:
        flags = ("--store", postgres.address(), "--artifacts", tmp_path / "artifacts", "--takeover-after-ms", "1000")
        with kept.Service(tmp_path / "a", *flags) as service:
            jobs, evaluated = begin(service)
        newest = version_in(postgres)
        take_back_postgresql(postgres)
        assert version_in(postgres) == 1 < newest
        assert postgres.ask("SELECT COUNT(*) FROM candidates WHERE body = ''") == "0"

        with kept.Service(tmp_path / "a", *flags) as service:
            check_that_they_go_on(service, jobs, evaluated)
            # What versions in between have beside the records: the order of listings, whose artifacts are.
            programs = service.programs(jobs[0])
            listed = service.client.call("JobService", "ListJobs", parent="projects/default", order_by="end_time desc")
            assert {job.name for job in listed.jobs} == set(jobs)
        assert version_in(postgres) == newest
        used = postgres.ask(f"SELECT DISTINCT sha256 FROM artifact_uses WHERE job = '{jobs[0]}'").split()
        assert set(used) == programs
        assert postgres.ask("SELECT COUNT(*) FROM jobs WHERE end_order IS NULL") == "0"


def owner_of(postgres):
    """Epoch and name of the owner of the jobs."""
    epoch, name = postgres.ask("SELECT epoch, name FROM owner").split("|")
    return int(epoch), name


def test_who_brings_the_database_up_to_date_owns_the_jobs_from_then_on(tmp_path):
    with outside.Postgres(tmp_path) as postgres:
        # So patient that nothing but the upgrade makes a new owner.
        flags = ("--store", postgres.address(), "--artifacts", tmp_path / "artifacts", "--takeover-after-ms", "600000")
        with kept.Service(tmp_path / "a", *flags, has_worker=False):
            processes.eventually(lambda: owner_of(postgres)[1], 60, "there is an owner")
            epoch, first = owner_of(postgres)
            # The last step of the schema, taken back: both coordinators know of it.
            assert version_in(postgres) == 12, "take back here what a newer step adds"
            postgres.ask("DROP INDEX jobs_to_compact; ALTER TABLE jobs DROP COLUMN is_compacted;"
                         " DELETE FROM schema_version WHERE version > 11")

            with kept.Service(tmp_path / "b", *flags, has_worker=False) as second:
                processes.eventually(lambda: owner_of(postgres)[1] not in ("", first), 60, "the other one owns the jobs")

                assert owner_of(postgres)[0] >= epoch + 2
                assert second.get("/readyz")[0] == 200 and version_in(postgres) == 12


def test_a_coordinator_leaves_a_database_to_a_newer_release(tmp_path):
    with outside.Postgres(tmp_path) as postgres:
        flags = ("--store", postgres.address(), "--artifacts", tmp_path / "artifacts", "--takeover-after-ms", "1000")
        with kept.Service(tmp_path / "a", *flags, has_worker=False) as service:
            job = service.start_job().name
            newest = version_in(postgres)
            # As the upgrade of a newer release does it.
            postgres.ask(
                f"BEGIN; UPDATE owner SET epoch = epoch + 1, beat = 0, name = '', address = '';"
                f"INSERT INTO schema_version (version) VALUES ({newest + 1}); COMMIT"
            )

            def says(word, status):
                return lambda: (lambda answer: answer[0] == status and word in answer[1])(service.get("/readyz"))

            processes.eventually(says("loop: nobody owns the jobs", 503), 30, "it has let go of the jobs")
            # Longer than it is patient with an owner that is silent.
            time.sleep(3)
            epoch, name = owner_of(postgres)
            assert name == "", "an older release has taken the jobs"
            # The newer one has them, to whom calls are passed on.
            postgres.ask("UPDATE owner SET epoch = epoch + 1, name = 'newer', address = '127.0.0.1:1'")
            processes.eventually(says("loop: ok", 200), 30, "it knows the owner")
            # The database is restored.
            postgres.ask(f"DELETE FROM schema_version WHERE version = {newest + 1}")
            processes.eventually(lambda: owner_of(postgres)[0] > epoch + 1, 60, "it owns the jobs again")
            processes.eventually(says("loop: ok", 200), 60, "it serves again")
            assert service.job(job).state not in kept.ENDED
