"""LoadGen's scenarios with the settings of a run. They are shorter than MLPerf's for submissions, so the report lists them."""

import dataclasses

import mlperf_loadgen as loadgen

SCENARIOS = ("SingleStream", "MultiStream", "Offline", "Server")
SAMPLES_PER_QUERY = 8
SERVER_PERCENTILE = 0.99
SERVER_LATENCY_MS = 50
# The fewest queries from which LoadGen accepts a 90th and a 99th percentile.
FEWEST_OF_90, FEWEST_OF_99 = 64, 662
# LoadGen asks Offline for this many times the samples that the expected rate computes in the time.
OFFLINE_SLACK = 1.1


@dataclasses.dataclass(frozen=True)
class Length:
    """How long a run is at least. With `quick`, MultiStream is judged by its 90th percentile, which needs fewer queries."""

    seconds: float
    quick: bool = False


def settings(scenario, length, rate=None, mode=loadgen.TestMode.PerformanceOnly):
    """`rate` is samples per second: what Offline is expected to reach, and what Server is sent."""
    made = loadgen.TestSettings()
    made.scenario = getattr(loadgen.TestScenario, scenario)
    made.mode = mode
    made.min_duration_ms = int(1000 * length.seconds)
    percentile = 0.9 if length.quick else SERVER_PERCENTILE
    if scenario == "SingleStream":
        made.single_stream_target_latency_percentile, made.min_query_count = 0.9, FEWEST_OF_90
    elif scenario == "MultiStream":
        made.multi_stream_samples_per_query = SAMPLES_PER_QUERY
        made.multi_stream_target_latency_percentile = percentile
        made.min_query_count = FEWEST_OF_90 if length.quick else FEWEST_OF_99
    elif scenario == "Offline":
        made.offline_expected_qps, made.min_query_count = rate, 1
    else:
        made.server_target_qps = rate
        made.server_target_latency_ns = SERVER_LATENCY_MS * 1_000_000
        made.server_target_latency_percentile = percentile
        made.min_query_count = FEWEST_OF_90 if length.quick else FEWEST_OF_99
    return made


def told(scenario, length, rate=None):
    """The settings in words, for the report."""
    made = settings(scenario, length, rate or 1)
    words = [f"at least {length.seconds:g} s and {made.min_query_count} queries"]
    if scenario == "SingleStream":
        words.append("one picture at a time, 90th percentile of latency")
    elif scenario == "MultiStream":
        words.append(f"{SAMPLES_PER_QUERY} pictures at a time, percentile {100 * made.multi_stream_target_latency_percentile:g} of latency")
    elif scenario == "Offline":
        words.append("all pictures in one query, samples per second")
    else:
        words.append(f"Poisson arrivals, percentile {100 * made.server_target_latency_percentile:g} within {SERVER_LATENCY_MS} ms")
    return "; ".join(words)
