# SPDX-License-Identifier: Apache-2.0
"""Every panel has something to show: real jobs on real daemons, a real Prometheus.

Also: metrics are well-formed, documented, and hold nobody's names; daemons say when they
can serve.
"""

import re
import subprocess

import deployed
import fake_llm
import live
import problems
import pytest
import stack as stacks

pytestmark = pytest.mark.skipif(
    not (deployed.PROMETHEUS_PROGRAM and deployed.PROMTOOL), reason="prometheus is missing; scripts/setup fetches it"
)

# Jobs of each kind. A rate begins with the second value of a series, so that each kind runs twice.
ROUNDS = 2

DAEMONS = ("mtmc-coordinator", "mtmc-policyd", "mtmc-gateway", "mtmc-worker")


def run_jobs(service, prometheus):
    names = []
    for turn in range(ROUNDS):
        options = problems.quick(stacks.CONTRACT, trials=3)
        options["evaluation"].omit_profile = False
        written = problems.quick(stacks.CONTRACT, trials=2, coder="llm")
        for number, fields in ((turn, options), (10 + turn, written)):
            job = service.create_job(problems.pointwise(number), name=f"problem-{number}", **fields)
            names.append(job.name)
            ended = service.await_job(job.name, 600)
            assert ended.HasField("best_speedup"), service.failures(job.name)
        # The next round's values are news.
        prometheus.await_scrape()
    return names


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """Service and Prometheus after the jobs, with the jobs' names."""
    folder = tmp_path_factory.mktemp("monitoring")
    with fake_llm.FakeLlm("I would rather talk about the weather.") as llm:
        with live.Service(folder / "host", llm.base_url) as service:
            with live.Prometheus(folder / "prometheus", service.http.values()) as prometheus:
                yield service, prometheus, run_jobs(service, prometheus)


def every_query():
    return [
        pytest.param(query, id=f"{name}: {panel} {number}")
        for name, board in deployed.dashboards().items()
        for number, (panel, query) in enumerate(deployed.queries(board))
    ]


@pytest.mark.parametrize("query", every_query())
def test_a_panel_shows_something(world, query):
    _, prometheus, _ = world
    assert prometheus.query(query), f"nothing for {query}"


def every_choice():
    return sorted({
        (entry["definition"], name)
        for name, board in deployed.dashboards().items()
        for entry in board["templating"]["list"] if entry["type"] == "query"
    })  # fmt: skip


@pytest.mark.parametrize("definition, board", every_choice())
def test_a_choice_has_values(world, definition, board):
    _, prometheus, _ = world
    metric, label = re.fullmatch(r"label_values\((\w+), (\w+)\)", definition).groups()
    assert prometheus.query(f'count by ({label}) ({metric}{{{label}!=""}})')


def test_a_query_that_asks_for_nothing_is_seen(world):
    """What the test above would say of a panel whose metric is gone."""
    _, prometheus, _ = world
    assert not prometheus.query("sum(rate(mtmc_gone_total[$__rate_interval]))")
    assert not prometheus.query("histogram_quantile(0.5, sum by (le) (rate(mtmc_gone_bucket[$__range])))")


def test_the_service_raises_no_alert(world):
    _, prometheus, _ = world
    # The language model of this test writes no programs, and Prometheus is young.
    assert prometheus.alerts() <= {"MtmcJobsFail"}


@pytest.mark.parametrize("daemon", DAEMONS)
def test_metrics_pass_the_linter(world, daemon):
    service, _, _ = world
    text = live.get(service.http[daemon], "/metrics")[1]
    done = subprocess.run(
        [deployed.PROMTOOL, "check", "metrics"], input=text, text=True, capture_output=True, check=False
    )
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def series(text):
    """(metric, labels) of each series, a histogram's once."""
    found = set()
    for line in text.splitlines():
        match = re.match(r"([a-z_]+?)(_bucket|_sum|_count)?(?:\{(.*)\})? \S+$", line)
        if not match or line.startswith("#"):
            continue
        name, suffix, labels = match.groups()
        is_histogram = f"# TYPE {name} histogram" in text
        keys = set(re.findall(r'(\w+)="', labels or "")) - ({"le"} if is_histogram else set())
        found.add((name if is_histogram else name + (suffix or ""), frozenset(keys)))
    return found


def test_metrics_are_those_of_the_document(world):
    service, _, _ = world
    served = {each for daemon in DAEMONS for each in series(live.get(service.http[daemon], "/metrics")[1])}
    known = deployed.documented()
    for name, labels in sorted(served):
        assert name in known, f"{name} is not in {deployed.PAGE.name}"
        assert labels == known[name], f"{name} has the labels {set(labels)}"
    recorded = {rule["record"] for rule in deployed.rules() if "record" in rule}
    missing = set(known) - {name for name, _ in served} - recorded
    assert not missing, f"documented, but not served: {missing}"


def test_a_name_means_one_thing(world):
    """Names of ours are served by one kind of daemon, unless all serve them."""
    service, _, _ = world
    by_daemon = {daemon: {name for name, _ in series(live.get(service.http[daemon], "/metrics")[1])} for daemon in DAEMONS}
    common = {"mtmc_build_info", "mtmc_dependency_up", "mtmc_trace_spans_total"}
    for daemon in DAEMONS:
        others = set().union(*(names for other, names in by_daemon.items() if other != daemon))
        shared = {name for name in by_daemon[daemon] & others if name.startswith("mtmc_")}
        assert shared <= common, shared - common


def test_labels_hold_no_names_that_grow_with_the_work(world):
    service, _, jobs = world
    texts = [live.get(service.http[daemon], "/metrics")[1] for daemon in DAEMONS]
    for job in jobs:
        identifier = job.rpartition("/")[2]
        assert not [text for text in texts if identifier in text or "candidates/" in text]


def test_the_speedup_of_a_job_is_that_of_its_record(world):
    service, prometheus, jobs = world
    shown = prometheus.query("mtmc_problem_best_speedup_ratio")
    for name in jobs:
        job = service.job(name)
        values = [value for labels, value in shown.items() if f'"{job.problem.display_name}"' in labels]
        assert values == [pytest.approx(job.best_speedup, rel=1e-6)]


@pytest.mark.parametrize("daemon", DAEMONS)
def test_a_daemon_that_serves_is_ready(world, daemon):
    service, _, _ = world
    code, text = live.get(service.http[daemon], "/readyz")
    assert code == 200 and text.startswith("ready\n") and "serving: ok\n" in text, text


def test_the_monitor_finds_the_daemons(world):
    service, _, _ = world
    script = deployed.ROOT / "scripts/monitor"
    good = subprocess.run([script, "--check", *service.http.values()], text=True, capture_output=True, check=False)
    bad = subprocess.run([script, "--check", "127.0.0.1:9"], text=True, capture_output=True, check=False)
    assert good.returncode == 0 and good.stdout.count(" ok\n") == len(DAEMONS), good.stdout + good.stderr
    assert bad.returncode == 1 and "refused" in bad.stdout
