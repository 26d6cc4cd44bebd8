#include "client/cli/tune/measurement.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

namespace saccade::client {
namespace {

using server::simulation::MeasuredModel;

// More than any daemon has. They bound what an answer or a file can ask of the simulation.
constexpr size_t kMaxBuckets = 1024;
constexpr size_t kMaxBatchSize = 1024;
constexpr int kMaxCores = 4096;
constexpr absl::Duration kMaxPass = absl::Hours(1);
// Calls whose median is the round trip.
constexpr int kRoundTrips = 15;

absl::Status Wrong(const std::string& what, const std::string& expected) {
  return absl::InvalidArgumentError(absl::StrCat(what, "; expected ", expected));
}

int64_t ItemBytes(const Model& model) {
  if (model.max_voxels > 0) return 0;
  return int64_t{4} * 3 * model.input_width * model.input_height * std::max(model.views, 1) *
         std::max(model.max_frames, 1);
}

absl::Status CheckBucket(const BucketTiming& bucket, size_t sizes) {
  const std::string name = absl::StrCat("bucket ", NameOf(bucket));
  if (bucket.passes.size() != sizes)
    return Wrong(absl::StrCat(name, " has ", bucket.passes.size(), " batch sizes"),
                 absl::StrCat(sizes, ", as the first bucket has"));
  for (const absl::Duration pass : bucket.passes) {
    if (!(pass > absl::ZeroDuration() && pass <= kMaxPass))
      return Wrong(absl::StrCat("a pass of ", name, " takes ", absl::FormatDuration(pass)),
                   "more than 0 and at most an hour");
  }
  if (bucket.items < 0 || !(bucket.deviation >= 0 && bucket.deviation <= 10))
    return Wrong(absl::StrCat(name, " has ", bucket.items, " items and a deviation of ", bucket.deviation),
                 "no negative number, and a deviation of at most 10");
  return absl::OkStatus();
}

}  // namespace

std::string NameOf(const BucketTiming& bucket) {
  return bucket.name.empty() ? absl::StrCat(bucket.id) : bucket.name;
}

absl::Status CheckMeasurement(const Measurement& measurement) {
  const ModelTiming& timing = measurement.timing;
  if (timing.buckets.empty())
    return absl::FailedPreconditionError(absl::StrCat(
        "the daemon has not measured a pass of model '", measurement.model,
        "' yet, because only requests determine its inputs' shapes; send it some, for example with "
        "saccade bench, and try again"));
  if (timing.buckets.size() > kMaxBuckets)
    return Wrong(absl::StrCat("there are ", timing.buckets.size(), " buckets"),
                 absl::StrCat("at most ", kMaxBuckets));
  const size_t sizes = timing.buckets.front().passes.size();
  if (sizes < 1 || sizes > kMaxBatchSize)
    return Wrong(absl::StrCat("the first bucket has ", sizes, " batch sizes"),
                 absl::StrCat("1 to ", kMaxBatchSize));
  std::set<std::string> names;
  for (const BucketTiming& bucket : timing.buckets) {
    if (absl::Status sound = CheckBucket(bucket, sizes); !sound.ok()) return sound;
    if (!names.insert(NameOf(bucket)).second)
      return Wrong(absl::StrCat("bucket ", NameOf(bucket), " is there twice"), "each once");
  }
  if (timing.cores < 1 || timing.cores > kMaxCores || timing.threads < 0 || timing.threads > kMaxCores ||
      timing.instances < 1 || timing.instances > kMaxCores)
    return Wrong(absl::StrCat("there are ", timing.instances, " instances of ", timing.threads,
                              " threads on ", timing.cores, " cores"),
                 absl::StrCat("1 to ", kMaxCores, " instances and cores"));
  if (timing.model_bytes < 0 || timing.resident_bytes < 0 || measurement.item_bytes < 0 ||
      measurement.decode < absl::ZeroDuration() || measurement.round_trip < absl::ZeroDuration() ||
      measurement.decode > kMaxPass || measurement.round_trip > kMaxPass)
    return Wrong("a size or a time is negative or longer than an hour",
                 "sizes in bytes and times of 0 or more");
  return absl::OkStatus();
}

absl::StatusOr<Measurement> Measure(Client& client, const std::string& model, int64_t version) {
  auto described = client.GetModel(model, version);
  if (!described.ok()) return described.status();
  if (described->state != ModelState::kReady)
    return absl::FailedPreconditionError(
        absl::StrCat("model '", model, "' is not ready",
                     described->reason.empty() ? "" : absl::StrCat(": ", described->reason),
                     "; only a ready model has latencies (saccade status shows when it is)"));
  if (!described->timing)
    return absl::FailedPreconditionError(absl::StrCat("the daemon tells no latencies of model '", model,
                                                      "': it is an ensemble, which computes nothing itself "
                                                      "(tune the models of its steps), or a shadow version, "
                                                      "or the daemon is older than this program"));
  Measurement made = {.model = described->name,
                      .version = described->version,
                      .precision = described->precision,
                      .timing = *std::move(described->timing),
                      .item_bytes = ItemBytes(*described),
                      .decode = {},
                      .round_trip = {}};
  const auto statistics = client.GetStatistics();
  if (!statistics.ok()) return statistics.status();
  for (const ModelStatistics& one : *statistics) {
    if (one.model == made.model && one.version == made.version) made.decode = one.decode.Mean();
  }
  std::vector<absl::Duration> trips;
  for (int i = 0; i < kRoundTrips; ++i) {
    const absl::Time start = absl::Now();
    if (const auto live = client.ServerLive(); !live.ok()) return live.status();
    trips.push_back(absl::Now() - start);
  }
  std::nth_element(trips.begin(), trips.begin() + kRoundTrips / 2, trips.end());
  made.round_trip = trips[kRoundTrips / 2];
  if (absl::Status sound = CheckMeasurement(made); !sound.ok()) return sound;
  return made;
}

std::vector<double> MixOf(const Measurement& measurement) {
  double all = 0;
  for (const BucketTiming& bucket : measurement.timing.buckets) all += static_cast<double>(bucket.items);
  std::vector<double> mix;
  for (const BucketTiming& bucket : measurement.timing.buckets) {
    mix.push_back(all > 0 ? static_cast<double>(bucket.items) / all
                          : 1 / static_cast<double>(measurement.timing.buckets.size()));
  }
  return mix;
}

MeasuredModel ToModel(const Measurement& measurement) {
  const ModelTiming& timing = measurement.timing;
  MeasuredModel model;
  model.precision = measurement.precision;
  model.threads = std::max(1, timing.threads);
  model.cores = timing.cores;
  model.decode = server::Nanos(measurement.decode);
  model.outside = server::Nanos(measurement.decode + measurement.round_trip);
  const std::vector<double> mix = MixOf(measurement);
  for (size_t bucket = 0; bucket < mix.size(); ++bucket) {
    const BucketTiming& learned = timing.buckets[bucket];
    model.deviation += mix[bucket] * learned.deviation;
    auto& passes = model.passes.emplace_back();
    for (const absl::Duration pass : learned.passes) passes.emplace_back(pass);
  }
  return model;
}

}  // namespace saccade::client
