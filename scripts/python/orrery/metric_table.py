"""Metrics of studies, in the order of tables. Made by scripts/update_key_tables.py from `orrery show metrics --json`."""
import typing


class Metric(typing.NamedTuple):
    """What tables and reports have to know of a metric."""

    name: str
    title: str
    more_is_better: bool
    is_share: bool
    place: int  # among the metrics that are shown first, from 1; 0: after them


METRICS = [
    Metric("step_time", "step time", False, False, 1),
    Metric("tokens_per_s", "tokens/s", True, False, 2),
    Metric("samples_per_s", "samples/s", True, False, 3),
    Metric("mfu", "MFU", True, True, 4),
    Metric("hfu", "HFU", True, True, 5),
    Metric("peak_memory", "peak memory", False, False, 6),
    Metric("compute", "compute", True, True, 7),
    Metric("exposed_communication", "exposed communication", False, True, 8),
    Metric("bubble", "pipeline bubble", False, True, 9),
    Metric("idle", "idle", False, True, 10),
    Metric("usd_per_step", "step price", False, False, 11),
    Metric("tokens_per_usd", "tokens/USD", True, False, 12),
    Metric("capex", "system price", False, False, 13),
    Metric("power", "power", False, False, 14),
    Metric("energy_per_step", "step energy", False, False, 15),
    Metric("tokens_per_j", "tokens/J", True, False, 16),
    Metric("lower_bound", "step time bound", False, False, 17),
    Metric("ettr", "ettr", True, False, 0),
    Metric("goodput", "goodput", True, False, 0),
    Metric("effective_tokens_per_s", "effective_tokens_per_s", True, False, 0),
    Metric("lost_npu_hours", "lost_npu_hours", False, False, 0),
    Metric("campaign_time", "campaign_time", False, False, 0),
    Metric("campaign_cost", "campaign_cost", False, False, 0),
    Metric("campaign_energy", "campaign_energy", False, False, 0),
    Metric("job_wait", "job_wait", False, False, 0),
    Metric("job_wait_p95", "job_wait_p95", False, False, 0),
    Metric("jct", "jct", False, False, 0),
    Metric("jct_p95", "jct_p95", False, False, 0),
    Metric("job_slowdown", "job_slowdown", False, False, 0),
    Metric("cluster_utilisation", "cluster_utilisation", True, False, 0),
    Metric("cluster_fragmentation", "cluster_fragmentation", False, False, 0),
    Metric("cluster_makespan", "cluster_makespan", False, False, 0),
    Metric("ttft_mean", "ttft_mean", False, False, 0),
    Metric("ttft_p50", "ttft_p50", False, False, 0),
    Metric("ttft_p90", "ttft_p90", False, False, 0),
    Metric("ttft_p99", "ttft_p99", False, False, 0),
    Metric("tpot_mean", "tpot_mean", False, False, 0),
    Metric("tpot_p50", "tpot_p50", False, False, 0),
    Metric("tpot_p90", "tpot_p90", False, False, 0),
    Metric("tpot_p99", "tpot_p99", False, False, 0),
    Metric("itl_mean", "itl_mean", False, False, 0),
    Metric("itl_p50", "itl_p50", False, False, 0),
    Metric("itl_p90", "itl_p90", False, False, 0),
    Metric("itl_p99", "itl_p99", False, False, 0),
    Metric("latency_mean", "latency_mean", False, False, 0),
    Metric("latency_p50", "latency_p50", False, False, 0),
    Metric("latency_p90", "latency_p90", False, False, 0),
    Metric("latency_p99", "latency_p99", False, False, 0),
    Metric("requests_per_s", "requests_per_s", True, False, 0),
    Metric("output_tokens_per_s", "output_tokens_per_s", True, False, 0),
    Metric("output_tokens_per_s_per_npu", "output_tokens_per_s_per_npu", True, False, 0),
    Metric("slo_attainment", "slo_attainment", True, False, 0),
    Metric("slo_goodput", "slo_goodput", True, False, 0),
    Metric("slo_goodput_per_npu", "slo_goodput_per_npu", True, False, 0),
    Metric("kv_use", "kv_use", False, False, 0),
    Metric("prefix_hit_share", "prefix_hit_share", True, False, 0),
    Metric("preemptions", "preemptions", False, False, 0),
    Metric("max_rate", "max_rate", True, False, 0),
    Metric("max_rate_per_npu", "max_rate_per_npu", True, False, 0),
]
BY_NAME = {metric.name: metric for metric in METRICS}
