#include "client/cli/tune/advice.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "server/simulation/plots.h"

namespace saccade::client {
namespace {

using server::simulation::Configuration;
using server::simulation::Estimate;
using server::simulation::kNever;
using server::simulation::ToMilliseconds;

constexpr int64_t kMebibyte = 1 << 20;
constexpr int64_t kMemoryStep = 256 * kMebibyte;
// config.max-inflight-bytes of the chart's values, what health calls may hold beside it, and how much memory
// these and kMaxDecodedBytes need for each byte (docs/deploying.md, "Memory").
constexpr int64_t kMaxInflightBytes = 536870912;
constexpr int64_t kHealthBytes = 96 * kMebibyte;
constexpr double kBoundsMemory = 1.3;
// What idle decode workers keep: all of them together, or each, if that is more.
constexpr int64_t kKeptByWorkers = 128 * kMebibyte;
constexpr int64_t kKeptByEachWorker = 4 * kMebibyte;
// What the daemon may grow beyond what it held when it was measured.
constexpr double kMemoryGrowth = 1.25;
// Share of the demand at which the configuration still holds that the autoscaler aims at.
constexpr double kTargetShare = 0.9;
// Fewer computed items say little about a pass's time.
constexpr int64_t kFewItems = 200;
// Above this relative deviation, passes share their cores with something else.
constexpr double kUnsteady = 0.25;

std::string Percent(double share) { return absl::StrFormat("%.0f %%", 100 * share); }

std::string Rate(double rate) { return absl::StrFormat("%.4g", rate); }

bool OnGpu(const Advice& advice) { return advice.measurement.timing.threads == 0; }

}  // namespace

int64_t MaxHeldItems(const Measurement& measurement) {
  if (measurement.item_bytes == 0) return std::numeric_limits<int64_t>::max() / 16;
  return std::max<int64_t>(1, kMaxDecodedBytes / measurement.item_bytes);
}

Resources ResourcesOf(const Advice& advice) {
  const Measurement& measurement = advice.measurement;
  const Configuration& chosen = advice.found.configuration;
  const double decoding = advice.traffic.rate / chosen.replicas * absl::ToDoubleSeconds(measurement.decode);
  Resources resources;
  // Passes on a GPU still need a core that starts them.
  const int passes = OnGpu(advice) ? 1 : chosen.instances * measurement.timing.threads;
  resources.cores = passes + static_cast<int>(std::ceil(decoding - 1e-9));
  if (!OnGpu(advice)) resources.cores = std::min(resources.cores, std::max(passes, measurement.timing.cores));
  const auto held = static_cast<double>(std::min(chosen.max_queue_size, MaxHeldItems(measurement)) *
                                        measurement.item_bytes);
  const double bounds =
      kBoundsMemory * static_cast<double>(kMaxInflightBytes + kMaxDecodedBytes + kHealthBytes);
  const int64_t kept = std::max(kKeptByWorkers, kKeptByEachWorker * resources.cores);
  const double bytes = std::max(kMemoryGrowth * static_cast<double>(measurement.timing.resident_bytes) + held,
                                bounds + static_cast<double>(kept + measurement.timing.model_bytes));
  resources.memory_bytes = (static_cast<int64_t>(bytes) + kMemoryStep - 1) / kMemoryStep * kMemoryStep;
  const double target = kTargetShare * 1000 * advice.breaking.before.demand;
  resources.target = static_cast<int>(std::clamp(std::floor(target / 10) * 10, 50.0, 950.0));
  return resources;
}

std::string ConfigText(const Advice& advice) {
  const Configuration& chosen = advice.found.configuration;
  std::string text = absl::StrFormat(
      "max_batch_size: %d\n"
      "instance_group { count: %d kind: %s }\n"
      "dynamic_batching {\n"
      "  default_queue_policy { max_queue_size: %d }\n"
      "}\n",
      chosen.max_batch_size, chosen.instances, OnGpu(advice) ? "KIND_GPU" : "KIND_CPU",
      chosen.max_queue_size);
  const auto parameter = [&text](const std::string& key, const std::string& value) {
    absl::StrAppend(&text, "parameters { key: \"", key, "\" value { string_value: \"", value, "\" } }\n");
  };
  if (!OnGpu(advice)) parameter("threads", absl::StrCat(advice.measurement.timing.threads));
  if (advice.many_precisions) parameter("precision", advice.measurement.precision);
  return text;
}

std::string ValuesText(const Advice& advice) {
  const int replicas = advice.found.configuration.replicas;
  const Resources resources = ResourcesOf(advice);
  const std::string each =
      absl::StrFormat("{cpu: \"%d\", memory: %dMi%s}", resources.cores, resources.memory_bytes / kMebibyte,
                      OnGpu(advice) ? ", nvidia.com/gpu: 1" : "");
  std::string text =
      absl::StrCat("autoscaling:\n  enabled: true\n  minReplicas: ", replicas,
                   "\n  maxReplicas: ", 2 * replicas, "\n  targetCPUUtilizationPercentage: 0\n  metrics:\n");
  for (const char* metric : {"saccade_demand", "saccade_demand_of_busiest_model"}) {
    absl::StrAppend(&text, "    - type: Pods\n      pods:\n        metric: {name: ", metric,
                    "}\n        target: {type: AverageValue, averageValue: ", resources.target, "m}\n");
  }
  // KEDA's triggers do not read `metrics`; they have a threshold of their own.
  absl::StrAppendFormat(&text, "  keda:\n    threshold: %.2f\n", resources.target / 1000.0);
  return absl::StrCat(text, "resources:\n  requests: ", each, "\n  limits: ", each, "\n");
}

std::string PlotText(const Advice& advice) {
  server::simulation::Line p99 = {.name = "p99 [ms]", .points = {}};
  server::simulation::Line goodput = {.name = "goodput [1/s]", .points = {}};
  for (const auto& [rate, estimate] : advice.curve) {
    if (estimate.p99 != kNever) p99.points.emplace_back(rate, ToMilliseconds(estimate.p99));
    goodput.points.emplace_back(rate, estimate.goodput);
  }
  return server::simulation::LinePlot("requests per second", "p99 in ms, goodput per second", {p99, goodput});
}

std::string BreakingText(const Advice& advice) {
  const server::simulation::Breaking& breaking = advice.breaking;
  const Estimate& after = breaking.after;
  std::string why;
  if (breaking.what == "cores") {
    server::simulation::Traffic traffic = advice.traffic;
    traffic.rate = breaking.breaks;
    const double used = CoresUsed(ToModel(advice.measurement), traffic, advice.found.configuration, after);
    why = absl::StrFormat(
        "the cores break first: the instances compute %s of the time, and use %.1f cores together with "
        "decoding",
        Percent(after.busy), used);
  } else if (breaking.what == "queue") {
    why = absl::StrCat("the queue breaks first: it is full for ", Percent(after.queue_full),
                       " of the requests while the instances compute ", Percent(after.busy), " of the time");
  } else if (breaking.what == "memory") {
    why = absl::StrCat("the memory breaks first: decoded items fill ", kMaxDecodedBytes / kMebibyte,
                       " MiB (max-decoded-bytes), so ", Percent(after.queue_full),
                       " of the requests are rejected");
  } else if (breaking.what == "deadline") {
    why = absl::StrCat("the deadline breaks first: ", Percent(after.too_late),
                       " of the requests are rejected because they would be late");
  } else {
    why = absl::StrCat(
        "bursts break first: requests that arrive together wait for each other, although the "
        "instances compute only ",
        Percent(after.busy), " of the time");
  }
  return absl::StrCat("holds up to ", Rate(breaking.holds), " requests per second; at ",
                      Rate(breaking.breaks), " ", why);
}

std::vector<std::string> Notes(const Advice& advice) {
  const Measurement& measurement = advice.measurement;
  const Configuration& chosen = advice.found.configuration;
  const ModelTiming& timing = measurement.timing;
  std::vector<std::string> notes;
  if (!OnGpu(advice))
    notes.push_back(
        absl::StrCat("only passes with ", timing.threads, timing.threads == 1 ? " thread" : " threads",
                     " were measured; other numbers take a measurement each (--save, --latencies)"));
  if (chosen.instances > timing.instances)
    notes.push_back(absl::StrCat("passes of ", timing.instances, " at a time were measured, and ",
                                 chosen.instances,
                                 " may slow each other down; serve it like this and run saccade tune again"));
  int64_t items = 0;
  bool extrapolated = false;
  for (const BucketTiming& bucket : timing.buckets) {
    items += bucket.items;
    extrapolated = extrapolated || chosen.max_batch_size > bucket.largest;
  }
  if (items < kFewItems)
    notes.push_back(absl::StrCat("the daemon has computed only ", items,
                                 " items of requests, so the latencies are mainly those of its warm-up"));
  if (const double deviation = ToModel(measurement).deviation; deviation > kUnsteady)
    notes.push_back(
        absl::StrCat("the time of a pass deviates by ", Percent(deviation),
                     ", because something else uses the cores; measure again while nothing does"));
  if (measurement.decode == absl::ZeroDuration())
    notes.push_back(
        "no time of decoding was measured, because there was no request yet or inputs are not decoded");
  // The search has chosen by this share, which grows with the number of replicas.
  if (const double share = advice.found.estimate.replayed; advice.traffic.recorded != nullptr && share < 1) {
    const auto all = static_cast<double>(advice.traffic.recorded->size());
    notes.push_back(absl::StrFormat(
        "the recording has %.0f requests, more than are simulated; the figures are those of its busiest "
        "stretch, %.0f requests in a row",
        all, std::round(share * all)));
  }
  if (extrapolated)
    notes.push_back("no batch of this size was measured in every bucket; larger ones are estimated");
  return notes;
}

}  // namespace saccade::client
