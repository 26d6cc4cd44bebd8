#include "server/metrics/families.h"

namespace saccade::server {
namespace {

using Buckets = prometheus::Histogram::BucketBoundaries;

Buckets BatchBuckets() { return {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024}; }

Buckets RatioBuckets() { return {0, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1}; }

// From 64 x 64 to 16,384 x 16,384, doubling the side each time.
Buckets PixelBuckets() {
  return {4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864, 268435456};
}

}  // namespace

// From a small network on a GPU to a request with an excessive deadline.
Buckets SecondsBuckets() {
  return {0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05,
          0.1,    0.25,    0.5,    1,     2.5,    5,     10,   30,    60};
}

// Below and above the tolerances of all tasks' measures.
Buckets DifferenceBuckets() {
  return {0, 0.0001, 0.0005, 0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10};
}

TritonFamilies::TritonFamilies(prometheus::Registry& registry)
    : success(registry, "nv_inference_request_success", "Requests answered."),
      failure(registry, "nv_inference_request_failure",
              "Requests that failed, by reason; without those that were wrong."),
      pictures(registry, "nv_inference_count", "Pictures inferred."),
      batches(registry, "nv_inference_exec_count", "Forward passes that succeeded, each over one batch."),
      request_us(registry, "nv_inference_request_duration_us",
                 "Microseconds from arrival to answer, summed over answered requests."),
      queue_us(registry, "nv_inference_queue_duration_us",
               "Microseconds waiting for a forward pass, summed over answered requests."),
      input_us(registry, "nv_inference_compute_input_duration_us",
               "Microseconds decoding and preparing pictures, summed over answered requests."),
      infer_us(registry, "nv_inference_compute_infer_duration_us",
               "Microseconds of the forward pass, summed over answered requests."),
      output_us(registry, "nv_inference_compute_output_duration_us",
                "Microseconds making the answer, summed over answered requests."),
      pending(registry, "nv_inference_pending_request_count", "Requests that wait for a forward pass."),
      load_seconds(registry, "nv_model_load_duration_secs", "Seconds the model took to load."),
      cache_hits(registry, "nv_cache_num_hits_per_model", "Requests answered from the response cache."),
      cache_misses(registry, "nv_cache_num_misses_per_model",
                   "Requests that the response cache had no answer for."),
      cache_hit_us(registry, "nv_cache_hit_duration_per_model",
                   "Microseconds finding answers in the response cache, summed over hits."),
      cache_miss_us(registry, "nv_cache_miss_duration_per_model",
                    "Microseconds looking for answers and storing new ones, summed over misses.") {}

SaccadeFamilies::SaccadeFamilies(prometheus::Registry& registry, const Buckets& seconds)
    : requests(registry, "saccade_requests_total",
               "Requests ended, by protocol and status code; model is empty for requests that named no known "
               "model."),
      request_seconds(registry, kRequestSeconds, "From arrival to answer or failure.", seconds),
      stage_seconds(registry, "saccade_stage_duration_seconds", "Time a request spent in one stage.",
                    seconds),
      queue(registry, "saccade_queue_requests", "Requests that wait for a forward pass."),
      batch_size(registry, "saccade_batch_size", "Pictures that shared a forward pass.", BatchBuckets()),
      no_memory(registry, "saccade_batches_without_memory_total",
                "Batches for which memory was insufficient, and which were split in halves."),
      padding(registry, "saccade_padding_ratio", "Share of a picture's bucket that is padding.",
              RatioBuckets()),
      pixels(registry, "saccade_image_pixels", "Pixels of a decoded picture.", PixelBuckets()),
      ready(registry, "saccade_model_ready", "1 if this version of the model answers requests."),
      load_seconds(registry, "saccade_model_load_duration_seconds",
                   "How long the model took to load and warm up."),
      precision(registry, "saccade_model_precision_info",
                "1, with the precision in which this version of the model is computed as label."),
      instances(registry, "saccade_model_instances",
                "Instances of the model, each of which runs one pass at a time."),
      set_aside(registry, "saccade_model_instances_set_aside",
                "Instances that take no work because their passes kept failing where others' did not."),
      lost(registry, "saccade_model_instances_lost",
           "Instances whose GPU has failed. They take no work until the daemon is restarted, and the daemon "
           "drains and ends."),
      retries(registry, "saccade_batches_retried_total",
              "Batches that failed on one instance and were tried once more on another."),
      model_demand(registry, "saccade_model_demand_seconds_total",
                   "Time of one instance that the requests which arrived need, rejected ones included. Its "
                   "rate is the number of instances that would be enough."),
      demand(
          registry, "saccade_demand_seconds_total",
          "Time of all devices of a kind that the requests of all models need, rejected ones included. Its "
          "rate is the share of this daemon that is asked for; above 1 it cannot be answered."),
      shed(registry, "saccade_shed_total", "Requests rejected before they were computed, by reason."),
      utilization(registry, "saccade_utilization",
                  "Share of the cores, or of the GPUs if that is more, that the requests of the last seconds "
                  "ask for, rejected ones included; above 1 they cannot all be answered."),
      overload_ratio(registry, "saccade_shed_ratio",
                     "Share of the requests of the last seconds that were rejected because of overload."),
      waiting(registry, "saccade_waiting_requests", "Requests of all models that wait for a forward pass."),
      inflight_requests(registry, "saccade_inflight_requests", "Requests admitted and not answered yet."),
      inflight_bytes(
          registry, "saccade_inflight_bytes",
          "Bytes of messages that are being received, of open calls with their headers, of the requests in "
          "flight with their copies of shared memory, and of large answers that are being sent."),
      inflight_decoded_bytes(registry, "saccade_inflight_decoded_bytes",
                             "Bytes of the decoded pictures and network inputs of the requests in flight."),
      models(registry, "saccade_models", "Known models, by whether a version of them is served."),
      model_memory(
          registry, "saccade_model_memory_bytes",
          "Memory that the models hold on the CPU, as measured while they were loaded, also of those "
          "that were unloaded or replaced and are still in use."),
      load_waiting(registry, "saccade_load_waiting_requests",
                   "Requests that wait for their model to be loaded."),
      loads(registry, "saccade_model_loads_total", "Versions of models that were loaded or failed to load."),
      thread_trials(
          registry, "saccade_thread_trials_total",
          "Trials of the threads of a model's passes that were repeated because the load beside the "
          "daemon has changed, by what came of it."),
      cache_joined(registry, "saccade_response_cache_joined_total",
                   "Hits that waited for an equal request that was being computed."),
      drift(registry, "saccade_drift",
            "Population stability index of what the model is sent and answers, by feature: 0 as in the "
            "reference, above 0.25 changed. NaN until it is known, or if the model has no such feature."),
      drift_items(registry, "saccade_drift_items_total", "Items that were looked at for drift."),
      drift_repeated(registry, "saccade_drift_repeated_total",
                     "Items looked at for drift whose input equals that of a recent one."),
      shadow_compared(
          registry, "saccade_shadow_compared_total",
          "Requests whose answers by a version and by its shadow version were compared, with those "
          "that the shadow version failed to answer."),
      shadow_agreed(registry, "saccade_shadow_agreed_total",
                    "Compared requests whose answers are the same by the task's measure and its tolerance."),
      shadow_equal(registry, "saccade_shadow_equal_total",
                   "Compared requests whose answers are the same bit for bit."),
      shadow_failed(registry, "saccade_shadow_failed_total",
                    "Compared requests that the shadow version failed to answer."),
      shadow_timed_passes(registry, "saccade_shadow_timed_passes_total",
                          "Passes whose time was compared with that of the shadow version's pass over the "
                          "same requests."),
      shadow_dropped(registry, "saccade_shadow_dropped_total",
                     "Requests that were chosen for the shadow version and not compared, by reason."),
      shadow_difference(
          registry, kShadowDifference,
          "Difference of two compared answers by their task's measure, without those that cannot "
          "be measured.",
          DifferenceBuckets()),
      shadow_promotion(registry, "saccade_shadow_promotion",
                       "1 for the state of the rule `promote`: measuring, promoted or refused."),
      cache_bytes(registry, "saccade_response_cache_bytes", "Bytes that the response cache takes."),
      cache_answers(registry, "saccade_response_cache_answers", "Answers in the response cache."),
      certificate_expiry(registry, "saccade_certificate_expiry_timestamp_seconds",
                         "When the server's TLS certificate expires, in seconds since 1970."),
      spans_exported(registry, "saccade_trace_spans_exported_total", "Spans accepted by the collector."),
      spans_dropped(registry, "saccade_trace_spans_dropped_total", "Spans that were lost, by reason."),
      captured(registry, "saccade_captured_calls_total", "Calls that were written to segments."),
      captured_bytes(registry, "saccade_captured_bytes_total", "Bytes that were written to segments."),
      capture_bytes(registry, "saccade_capture_bytes", "Bytes of all segments in the capture's folder."),
      capture_dropped(registry, "saccade_capture_dropped_calls_total",
                      "Calls that were chosen but not written, by reason."),
      capture_events(registry, "saccade_capture_events_total", "Events that the capture's sink has taken."),
      capture_events_dropped(registry, "saccade_capture_dropped_events_total",
                             "Events that the capture's sink did not get, by reason."),
      front_refusals(registry, "saccade_front_refusals_total",
                     "Connections and requests that the network front refused or ended, by reason."),
      front_connections(registry, "saccade_front_connections", "Open connections, by port."),
      front_open_requests(registry, "saccade_front_requests_open",
                          "Requests over gRPC and HTTP that are not completely received and answered."),
      log_lines_dropped(registry, "saccade_log_lines_dropped_total",
                        "Lines of the log that were not written, by reason: their reader did not keep up, or "
                        "stderr did not take them."),
      decode_workers(registry, "saccade_decode_workers",
                     "Processes that decode pictures, by state: busy or idle."),
      decode_worker_starts(registry, "saccade_decode_worker_starts_total",
                           "Decode workers that were started."),
      decode_worker_ends(
          registry, "saccade_decode_worker_ends_total",
          "Decode workers that ended early, by reason: they crashed, took too much processor time, "
          "decoded for a call that was cancelled or late, or ended without a picture."),
      build_info(registry, "saccade_build_info", "1, with the daemon's version as label.") {}

}  // namespace saccade::server
