# SPDX-License-Identifier: Apache-2.0
"""What the dashboards show: every panel with its queries, units and one sentence.

`$__rate_interval` is Grafana's window of a rate, `$__range` the time that is shown. A
rate of a series that has just appeared begins with its second value, so the first job
of a kind after a coordinator's start is not in sums over the range; what must not miss
it asks for the value itself.
"""

import dataclasses

# A metric with each label that can be chosen.
VARIABLES = {
    "project": "mtmc_jobs_finished_total",
    "gpu_product": "mtmc_workers",
    "template": "mtmc_template_candidates_total",
    "model": "mtmc_llm_requests_total",
}


@dataclasses.dataclass(frozen=True)
class Query:
    expr: str
    legend: str = ""


@dataclasses.dataclass(frozen=True)
class Panel:
    title: str
    # Grafana's type and unit.
    kind: str
    unit: str
    queries: tuple
    # What it says, and what to think of when it is odd.
    text: str
    width: int = 12
    is_stacked: bool = False


@dataclasses.dataclass(frozen=True)
class Board:
    uid: str
    title: str
    text: str
    since: str
    # (label, its name for people).
    variables: tuple
    # (heading, panels).
    rows: tuple


def stat(title, expr, text, unit="short", width=6):
    return Panel(title, "stat", unit, (Query(expr),), text, width)


def graph(title, unit, text, *queries, width=12):
    return Panel(title, "timeseries", unit, queries, text, width)


def stacked(title, unit, text, *queries, width=12):
    return Panel(title, "timeseries", unit, queries, text, width, is_stacked=True)


def bars(title, unit, text, *queries, width=12):
    return Panel(title, "bargauge", unit, queries, text, width)


def rate(metric, labels=""):
    return f"rate({metric}{{{labels}}}[$__rate_interval])"


def over_range(metric, labels=""):
    return f"increase({metric}{{{labels}}}[$__range])"


def quantile(share, histogram, by="", labels="", window="rate"):
    """Of what a histogram saw within the window, by the labels named."""
    buckets = (rate if window == "rate" else over_range)(f"{histogram}_bucket", labels)
    return f"histogram_quantile({share}, sum by (le{', ' + by if by else ''}) ({buckets}))"


def mean(histogram, by, labels=""):
    total, count = (over_range(f"{histogram}_{part}", labels) for part in ("sum", "count"))
    return f"sum by ({by}) ({total}) / sum by ({by}) ({count})"


WHERE = 'project=~"$project", gpu_product=~"$gpu_product"'
DEVICE = 'gpu_product=~"$gpu_product"'
BEST = f"mtmc_problem_best_speedup_ratio{{{WHERE}}}"
VERIFIED = 'outcome=~"faster|same|slower|ambiguous"'

SPEEDUPS = Board(
    "mtmc-speedups",
    "Kernel speedups",
    "What the kernels of mtmc gain over the first baseline of their jobs, and what that cost.",
    "now-24h",
    (("project", "Project"), ("gpu_product", "Device"), ("template", "Template")),
    (
        ("What is gained", (
            stat("Problems with a verified winner", f"count({BEST})",
                 "Of those seen last; the coordinator serves the newest 100."),
            stat("Best speedups, geometric mean", f"exp(avg(ln({BEST})))",
                 "Over the first baseline of each job. Winners of a problem's newest job.", unit="none"),
            stat("Jobs with a verified winner",
                 f'sum({over_range("mtmc_jobs_finished_total", WHERE + ", outcome=" + chr(34) + "succeeded" + chr(34))})'
                 f' / sum({over_range("mtmc_jobs_finished_total", WHERE)})',
                 "Share of the jobs that ended in the time shown.", unit="percentunit"),
            stat("Trials that are verified",
                 f'sum({over_range("mtmc_candidates_total", DEVICE + ", " + VERIFIED)})'
                 f' / sum({over_range("mtmc_candidates_total", DEVICE)})',
                 "Share of the trials whose program was right on every hidden input.", unit="percentunit"),
            graph("Best speedup by problem", "none",
                  "As it grows while a job searches. A fall is a newer job of the same problem.",
                  Query(f"max by (problem, gpu_product) ({BEST})", "{{problem}} on {{gpu_product}}"), width=16),
            bars("The largest", "none", "A speedup that seems too good may be one: look at the program.",
                 Query(f"topk(15, max by (problem, project) ({BEST}))", "{{project}} / {{problem}}"), width=8),
            bars("Distribution of winners", "none",
                 "Winners by speedup; each bar ends at its number.",
                 Query(f'sum by (le) ({over_range("mtmc_job_speedup_ratio_bucket", WHERE)})', "{{le}}"), width=8),
            graph("Winners' speedup: tenth, half, nine tenths", "none", "Quantiles over the time shown.",
                  *(Query(quantile(q, "mtmc_job_speedup_ratio", labels=WHERE, window="range"), f"p{int(q * 100)}")
                    for q in (0.1, 0.5, 0.9)), width=8),
            graph("Winners' mean speedup by project", "none", "Arithmetic mean of the jobs of the time shown.",
                  Query(mean("mtmc_job_speedup_ratio", "project", WHERE), "{{project}}"), width=8),
            graph("Winners' mean speedup by device", "none", "Arithmetic mean of the jobs of the time shown.",
                  Query(mean("mtmc_job_speedup_ratio", "gpu_product", WHERE), "{{gpu_product}}")),
        )),
        ("Templates", (
            stacked("Trials by template", "short", "A trial counts once for each template that it uses. `written` is"
                    " what a language model or a user wrote.",
                    Query(f'sum by (template) ({over_range("mtmc_template_candidates_total", "template=~" + chr(34) + "$template" + chr(34))})', "{{template}}"), width=8),
            bars("Trials that were faster than the baseline", "percentunit", "Share by template.",
                 Query('sum by (template) (mtmc_template_candidates_total{template=~"$template", outcome="faster"})'
                       ' / sum by (template) (mtmc_template_candidates_total{template=~"$template"})'
                       ' or 0 * sum by (template) (mtmc_template_candidates_total{template=~"$template"})', "{{template}}"), width=8),
            graph("Median speedup of winners by template", "none", "Of the winners that have a kernel of the template.",
                  Query(quantile(0.5, "mtmc_template_speedup_ratio", "template", 'template=~"$template", ' + DEVICE, "range"), "{{template}}"), width=8),
        )),
        ("Distance from the roofline", (
            graph("Share of the best possible time", "percentunit",
                  "Best time that the device's memory and arithmetic allow, over the winner's. 100 % is done.",
                  *(Query(quantile(q, "mtmc_job_speed_of_light_ratio", labels=WHERE, window="range"), f"p{int(q * 100)}")
                    for q in (0.1, 0.5, 0.9))),
            graph("Mean share by device", "percentunit", "As above, arithmetic mean.",
                  Query(mean("mtmc_job_speed_of_light_ratio", "gpu_product", WHERE), "{{gpu_product}}")),
        )),
        ("What a job costs", (
            graph("Device time of a job", "s", "Time on workers until the job's end.",
                  Query(quantile(0.5, "mtmc_job_device_seconds", "gpu_product", WHERE, "range"), "half, {{gpu_product}}"),
                  Query(quantile(0.95, "mtmc_job_device_seconds", "gpu_product", WHERE, "range"), "95 %, {{gpu_product}}"), width=8),
            graph("Time from creation to end", "s", "With the wait for workers and for language models.",
                  Query(quantile(0.5, "mtmc_job_duration_seconds", "project", WHERE, "range"), "half, {{project}}"),
                  Query(quantile(0.95, "mtmc_job_duration_seconds", "project", WHERE, "range"), "95 %, {{project}}"), width=8),
            graph("Time of a trial", "s", "From the choice of a step to its outcome.",
                  Query(quantile(0.5, "mtmc_trial_seconds", "gpu_product", DEVICE, "range"), "half, {{gpu_product}}"),
                  Query(quantile(0.95, "mtmc_trial_seconds", "gpu_product", DEVICE, "range"), "95 %, {{gpu_product}}"), width=8),
            bars("Device time by project", "s", "Of the jobs that ended in the time shown.",
                 Query(f'sum by (project) ({over_range("mtmc_job_device_seconds_sum", WHERE)})', "{{project}}"), width=8),
            bars("Tokens of a job", "short", "Mean of the jobs that ended in the time shown.",
                 Query(f'sum by (project) ({over_range("mtmc_job_tokens_total", WHERE)})'
                       f' / sum by (project) ({over_range("mtmc_jobs_finished_total", WHERE)})', "{{project}}"), width=8),
            bars("Why jobs end", "short", "`trials`, `wall_time` and `tokens` are budgets that were used up.",
                 Query(f'sum by (outcome, reason) ({over_range("mtmc_jobs_finished_total", WHERE)})', "{{outcome}}: {{reason}}"), width=8),
        )),
    ),
)  # fmt: skip

FLEET = Board(
    "mtmc-fleet",
    "Fleet",
    "Workers, their devices, and where the time of an evaluation goes. Hardware counters of GPUs (power, "
    "temperature, memory) are dcgm-exporter's.",
    "now-6h",
    (("gpu_product", "Device"),),
    (
        ("Workers", (
            stacked("Workers by state", "short", "`lost` has not called in time; `quarantined` failed its canary.",
                    Query(f"sum by (state) (mtmc_workers{{{DEVICE}}})", "{{state}}"), width=8),
            stacked("Workers by device", "short", "All that the coordinator has heard of in a day.",
                    Query(f"sum by (gpu_product) (mtmc_workers{{{DEVICE}}})", "{{gpu_product}}"), width=8),
            stat("Quarantined devices", f"sum(mtmc_gpu_quarantined{{{DEVICE}}})",
                 "Should be 0; `mtmc workers list` has the reason.", width=8),
            graph("Busy ratio", "percentunit", "Share of the time in which a device runs kernels of candidates and"
                  " baselines; the rest is compilation, comparison and waiting.",
                  Query(f'avg by (gpu_product) ({rate("mtmc_gpu_busy_seconds_total", DEVICE)})', "{{gpu_product}}"), width=8),
            graph("Evaluations an hour", "short", "As workers have done them, whatever became of them.",
                  Query(f'3600 * sum by (gpu_product) ({rate("mtmc_worker_evaluations_total", DEVICE)})', "{{gpu_product}}"), width=8),
            stacked("What workers do now", "short", "Workers by the stage of their work.",
                    Query("sum by (phase) (mtmc_worker_phase)", "{{phase}}"), width=8),
        )),
        ("Queue", (
            stacked("Work that waits", "short", "By the device that it asks for.",
                    Query("sum by (queue, gpu_product) (mtmc_queue_depth)", "{{queue}} for {{gpu_product}}"), width=8),
            graph("Wait until work is granted", "s", "From submission to the first grant.",
                  Query(quantile(0.5, "mtmc_queue_wait_seconds"), "half"),
                  Query(quantile(0.95, "mtmc_queue_wait_seconds"), "95 %"), width=8),
            graph("Lost and repeated", "short", "An hour. Workers lost with a lease, leases that expired, work queued again.",
                  Query(f'3600 * sum by (cause) ({rate("mtmc_worker_lost_total")})', "lost: {{cause}}"),
                  Query(f'3600 * sum({rate("mtmc_worker_lease_expired_total")})', "leases expired"),
                  Query(f'3600 * sum by (cause) ({rate("mtmc_task_retries_total")})', "again: {{cause}}"), width=8),
        )),
        ("Evaluations", (
            stacked("Where the time goes", "s", "Seconds of each stage in a second, all workers together.",
                    Query(f'sum by (phase) ({rate("mtmc_evaluation_phase_seconds_sum")})', "{{phase}}"), width=8),
            graph("Time of a stage, 95 %", "s", "Of one evaluation.",
                  Query(quantile(0.95, "mtmc_evaluation_phase_seconds", "phase"), "{{phase}}"), width=8),
            stacked("Outcomes an hour", "short", "`measured` is verified; others by failure.",
                    Query(f'3600 * sum by (outcome) ({rate("mtmc_evaluations_total")})', "{{outcome}}"), width=8),
            graph("Programs refused an hour", "short", "They ran and must not be trusted.",
                  Query(f'3600 * sum by (reason) ({rate("mtmc_evaluations_rejected_total")})', "{{reason}}"), width=8),
            graph("Samples dropped an hour", "short", "`throttled`: the clock was too low. Many of them: cooling, or a"
                  " power limit.",
                  Query(f'3600 * sum by (reason) ({rate("mtmc_gpu_dropped_samples_total", DEVICE)})', "{{reason}}"), width=8),
            graph("Memory of the workers", "bytes", "Of the daemon; its children come on top.",
                  Query('process_resident_memory_bytes * on (instance) group_left mtmc_build_info{program="mtmc-worker"}', "{{instance}}"), width=8),
        )),
    ),
)  # fmt: skip

COORDINATOR = Board(
    "mtmc-coordinator",
    "Coordinator",
    "The service itself: jobs, calls, its event loop, what it depends on.",
    "now-6h",
    (),
    (
        ("Service", (
            stat("Daemons that answer", 'sum(up{job="mtmc"})', "Of those that Prometheus knows.", width=4),
            stat("Versions", "count(count by (version) (mtmc_build_info))", "Should be 1, but during an upgrade.", width=4),
            stacked("Open jobs", "short", "By state.", Query("sum by (state) (mtmc_jobs)", "{{state}}"), width=8),
            stacked("Jobs ended an hour", "short", "By outcome.",
                    Query(f'3600 * sum by (outcome) ({rate("mtmc_jobs_finished_total")})', "{{outcome}}"), width=8),
            graph("What daemons depend on", "bool", "1 is there. What is missing is in `/readyz` of the daemon.",
                  Query("min by (dependency) (mtmc_dependency_up)", "{{dependency}}"), width=8),
            graph("Event loop is late by", "s", "Above a second, everything waits: look at the disk.",
                  Query(quantile(0.5, "mtmc_event_loop_lag_seconds"), "half"),
                  Query(quantile(0.99, "mtmc_event_loop_lag_seconds"), "99 %"), width=8),
            graph("Evaluations answered from the store", "percentunit", "Share of those asked for.",
                  Query(f'sum({rate("mtmc_cache_requests_total", "result=" + chr(34) + "hit" + chr(34))}) / sum({rate("mtmc_cache_requests_total")})'
                        f' or 0 * sum({rate("mtmc_cache_requests_total")})', "hits"), width=8),
        )),
        ("Calls", (
            graph("Calls a second", "reqps", "By method, all daemons.",
                  Query(f'sum by (grpc_service, grpc_method) ({rate("grpc_server_handled_total")})', "{{grpc_service}}/{{grpc_method}}")),
            graph("Time of a call, 95 %", "s", "`Synchronize` waits for work, `WatchJob` is as long as its job.",
                  Query(quantile(0.95, "grpc_server_handling_seconds", "grpc_service, grpc_method", 'grpc_method!~"Synchronize|WatchJob"'), "{{grpc_service}}/{{grpc_method}}")),
            stacked("Answers by code", "reqps", "UNAVAILABLE and RESOURCE_EXHAUSTED are retried by clients.",
                    Query(f'sum by (grpc_code) ({rate("grpc_server_handled_total")})', "{{grpc_code}}")),
        )),
        ("Decisions", (
            stacked("Decisions an hour by action", "short", "As recorded with the trials.",
                    Query(f'3600 * sum by (action) ({rate("mtmc_policy_decisions_total")})', "{{action}}"), width=8),
            stacked("Decisions an hour by policy", "short", "`measured` joins steps that were measured before.",
                    Query(f'3600 * sum by (policy) ({rate("mtmc_policy_decisions_total")})', "{{policy}}"), width=8),
            graph("The rules stood in, an hour", "short", "For a policy service that did not decide.",
                  Query(f'3600 * sum by (cause) ({rate("mtmc_policy_fallback_total")})', "{{cause}}"), width=8),
        )),
        ("Process", (
            graph("Memory", "bytes", "Resident.", Query("process_resident_memory_bytes * on (instance) group_left (program) mtmc_build_info", "{{program}} {{instance}}"), width=8),
            graph("Processor", "short", "Cores in use.", Query(f'{rate("process_cpu_seconds_total")} * on (instance) group_left (program) mtmc_build_info', "{{program}} {{instance}}"), width=8),
            graph("Descriptors in use", "percentunit", "Of those that the process may open.",
                  Query("process_open_fds / process_max_fds * on (instance) group_left (program) mtmc_build_info", "{{program}} {{instance}}"), width=8),
        )),
    ),
)  # fmt: skip

MODEL = 'model=~"$model"'

LANGUAGE_MODELS = Board(
    "mtmc-language-models",
    "Language models",
    "What micro coders and macro policies ask of language models, and what it costs.",
    "now-6h",
    (("model", "Model"),),
    (
        ("Requests", (
            stacked("Requests a minute", "short", "By outcome. `refused`: the key, or the request.",
                    Query(f'60 * sum by (model, outcome) ({rate("mtmc_llm_requests_total", MODEL)})', "{{model}}: {{outcome}}"), width=8),
            graph("Time of a request", "s", "Retries included.",
                  Query(quantile(0.5, "mtmc_llm_request_duration_seconds", "model", MODEL, "range"), "half, {{model}}"),
                  Query(quantile(0.95, "mtmc_llm_request_duration_seconds", "model", MODEL, "range"), "95 %, {{model}}"), width=8),
            stat("Requests that fail", f'1 - sum({over_range("mtmc_llm_requests_total", MODEL + ", outcome=" + chr(34) + "ok" + chr(34))}) / sum({over_range("mtmc_llm_requests_total", MODEL)})',
                 "Share of those in the time shown.", unit="percentunit", width=8),
        )),
        ("Cost", (
            stacked("Tokens a minute", "short", "As billed.",
                    Query(f'60 * sum by (model, type) ({rate("mtmc_llm_tokens_total", MODEL)})', "{{model}}: {{type}}"), width=8),
            stat("Cost", f'sum({over_range("mtmc_llm_cost_usd_total", MODEL)})',
                 "In the time shown, by the prices of the gateway's flags.", unit="currencyUSD", width=8),
            graph("Refused for a job's budget, an hour", "short", "A job that has used its tokens up ends.",
                  Query(f'3600 * sum by (kind) ({rate("mtmc_budget_rejections_total")})', "{{kind}}"), width=8),
        )),
        ("Coders", (
            stacked("Programs asked for, a minute", "short", "By outcome: `ok`, or why the coder gave none.",
                    Query(f'60 * sum by (coder, outcome) ({rate("mtmc_coder_requests_total")})', "{{coder}}: {{outcome}}")),
            bars("Trials by coder and outcome", "short", "In the time shown.",
                 Query(f'sum by (coder, outcome) ({over_range("mtmc_candidates_total")})', "{{coder}}: {{outcome}}")),
        )),
        ("Policies", (
            graph("Time of a decision, 95 %", "s", "In the policy service, its queue included.",
                  Query(quantile(0.95, "mtmc_policy_inference_seconds", "policy"), "{{policy}}"), width=8),
            graph("As the coordinator sees it, 95 %", "s", "With the network.",
                  Query(quantile(0.95, "mtmc_policy_call_seconds"), "calls"), width=8),
            stacked("Answers a minute", "short", "By outcome.",
                    Query(f'60 * sum by (policy, outcome) ({rate("mtmc_policy_requests_total")})', "{{policy}}: {{outcome}}"), width=8),
        )),
    ),
)  # fmt: skip

BOARDS = (SPEEDUPS, FLEET, COORDINATOR, LANGUAGE_MODELS)
