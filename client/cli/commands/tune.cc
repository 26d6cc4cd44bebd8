#include "client/cli/commands/tune.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "client/cli/commands/connect.h"
#include "client/cli/output/failure.h"
#include "client/cli/output/json.h"
#include "client/cli/output/output_file.h"
#include "client/cli/tune/advice.h"
#include "client/cli/tune/measurement.h"
#include "client/cli/tune/traffic_file.h"

namespace saccade::client {
namespace {

using server::Nanos;
using server::simulation::Configuration;
using server::simulation::Estimate;
using server::simulation::kNever;
using server::simulation::ToMilliseconds;

// A recording of a year at ten requests per second does not fit; it would not be simulated either.
constexpr int64_t kMaxFileBytes = int64_t{1} << 30;
// Rates of the plot, as shares of the wished one.
constexpr double kCurve[] = {0.1, 0.25, 0.4, 0.55, 0.7, 0.8, 0.9, 1, 1.1, 1.2, 1.35, 1.5, 1.75, 2};

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  const std::streamoff size = file ? static_cast<std::streamoff>(file.tellg()) : -1;
  if (size < 0) return absl::NotFoundError("cannot be read; expected a file");
  if (size > kMaxFileBytes)
    return absl::InvalidArgumentError(absl::StrCat("has ", size, " bytes; expected at most ", kMaxFileBytes));
  file.seekg(0);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

// Completes an error with the option and the file that it is about.
int ComplainOfFile(Console& console, const char* option, const std::string& path,
                   const absl::Status& status) {
  Complain(console, absl::StrCat(option, " ", path, ": ", status.message()));
  return kExitUsage;
}

// Returns kExitOk, or the exit code after an error was printed.
int GatherMeasurements(const TuneCommand& command, Console& console, std::vector<Measurement>* measurements) {
  for (const std::string& path : command.latencies) {
    const auto text = ReadFile(path);
    if (!text.ok()) return ComplainOfFile(console, "--latencies", path, text.status());
    auto read = FromJsonText(*text);
    if (!read.ok()) return ComplainOfFile(console, "--latencies", path, read.status());
    if (!command.model.empty() && read->model != command.model)
      return ComplainOfFile(console, "--latencies", path,
                            absl::InvalidArgumentError(absl::StrCat("is of model '", read->model,
                                                                    "'; expected '", command.model, "'")));
    measurements->push_back(*std::move(read));
  }
  if (!measurements->empty()) return kExitOk;
  const auto client = ConnectOrComplain(console, command.connection);
  if (client == nullptr) return kExitUsage;
  auto measured = Measure(*client, command.model, command.version);
  if (absl::IsFailedPrecondition(measured.status())) {
    Complain(console, measured.status().message());
    return kExitFailure;
  }
  if (!measured.ok()) return ComplainOf(console, command.connection, measured.status());
  measurements->push_back(*std::move(measured));
  return kExitOk;
}

std::vector<std::string> BucketNames(const Measurement& measurement) {
  std::vector<std::string> names;
  for (const BucketTiming& bucket : measurement.timing.buckets) names.push_back(NameOf(bucket));
  return names;
}

absl::Status CheckSameBuckets(const std::vector<Measurement>& measurements) {
  for (const Measurement& one : measurements) {
    if (BucketNames(one) != BucketNames(measurements.front()))
      return absl::InvalidArgumentError(
          "the files of --latencies have different buckets; expected measurements of the same traffic: send "
          "each "
          "daemon the same requests before --save");
  }
  return absl::OkStatus();
}

// "800x1344=0.7,1344x800=0.3".
absl::StatusOr<std::vector<double>> ParseMix(const std::string& text,
                                             const std::vector<std::string>& buckets) {
  std::vector<double> mix(buckets.size());
  double sum = 0;
  for (const absl::string_view part : absl::StrSplit(text, ',')) {
    const std::pair<std::string, std::string> named = absl::StrSplit(part, absl::MaxSplits('=', 1));
    const auto found = std::find(buckets.begin(), buckets.end(), named.first);
    double share = 0;
    if (found == buckets.end() || !absl::SimpleAtod(named.second, &share) || !(share >= 0 && share <= 1e9))
      return absl::InvalidArgumentError(absl::StrCat(
          "--mix holds '", part, "'; expected BUCKET=SHARE with one of ", absl::StrJoin(buckets, ", ")));
    mix[static_cast<size_t>(found - buckets.begin())] += share;
    sum += share;
  }
  if (sum <= 0) return absl::InvalidArgumentError("--mix has no share above 0; expected one or more");
  for (double& share : mix) share /= sum;
  return mix;
}

// REQUIRES: `measurements` is not empty.
int ReadTraffic(const TuneCommand& command, const std::vector<Measurement>& measurements, Console& console,
                server::simulation::Traffic* traffic) {
  const std::vector<std::string> buckets = BucketNames(measurements.front());
  traffic->rate = command.rate;
  traffic->cv = command.burstiness;
  traffic->mix = MixOf(measurements.front());
  if (!command.mix.empty()) {
    auto mix = ParseMix(command.mix, buckets);
    if (!mix.ok()) {
      Complain(console, mix.status().message());
      return kExitUsage;
    }
    traffic->mix = *std::move(mix);
  }
  if (command.traffic.empty()) return kExitOk;
  const auto text = ReadFile(command.traffic);
  if (!text.ok()) return ComplainOfFile(console, "--traffic", command.traffic, text.status());
  auto arrivals = ParseTraffic(*text, buckets);
  if (!arrivals.ok()) return ComplainOfFile(console, "--traffic", command.traffic, arrivals.status());
  if (command.rate == 0) traffic->rate = RateOf(*arrivals);
  std::fill(traffic->mix.begin(), traffic->mix.end(), 0.0);
  for (const auto& arrival : *arrivals)
    traffic->mix[static_cast<size_t>(arrival.bucket)] += 1 / static_cast<double>(arrivals->size());
  traffic->recorded = std::make_shared<const std::vector<server::simulation::Arrival>>(*std::move(arrivals));
  return kExitOk;
}

nlohmann::ordered_json P99(const Estimate& estimate) {
  if (estimate.p99 == kNever) return nullptr;
  return Milliseconds(ToDuration(estimate.p99));
}

nlohmann::ordered_json ToJson(const Estimate& estimate) {
  return {{"p50_ms", Milliseconds(ToDuration(estimate.p50))},
          {"p99_ms", P99(estimate)},
          {"goodput", estimate.goodput},
          {"answered", estimate.answered},
          {"queue_full", estimate.queue_full},
          {"too_late", estimate.too_late},
          {"busy", estimate.busy},
          {"demand", estimate.demand},
          {"mean_batch_size", estimate.mean_batch}};
}

void PrintJson(const Advice& advice, Console& console) {
  const Configuration& chosen = advice.found.configuration;
  const Resources resources = ResourcesOf(advice);
  nlohmann::ordered_json document = {{"version", 1},
                                     {"model", advice.measurement.model},
                                     {"rate", advice.traffic.rate},
                                     {"wished_p99_ms", Milliseconds(ToDuration(advice.goal.p99))},
                                     {"configuration",
                                      {{"replicas", chosen.replicas},
                                       {"instances", chosen.instances},
                                       {"threads", advice.measurement.timing.threads},
                                       {"precision", advice.measurement.precision},
                                       {"max_batch_size", chosen.max_batch_size},
                                       {"max_queue_size", chosen.max_queue_size}}},
                                     {"resources",
                                      {{"cpu", resources.cores},
                                       {"memory_bytes", resources.memory_bytes},
                                       {"demand_target", resources.target}}},
                                     {"estimate", ToJson(advice.found.estimate)},
                                     {"breaks",
                                      {{"what", advice.breaking.what},
                                       {"holds_rate", advice.breaking.holds},
                                       {"breaks_rate", advice.breaking.breaks},
                                       {"text", BreakingText(advice)}}},
                                     {"curve", nlohmann::ordered_json::array()},
                                     {"notes", Notes(advice)},
                                     {"config_pbtxt", ConfigText(advice)},
                                     {"helm_values", ValuesText(advice)}};
  for (const auto& [rate, estimate] : advice.curve)
    document["curve"].push_back({{"rate", rate}, {"p99_ms", P99(estimate)}, {"goodput", estimate.goodput}});
  console.out << Dump(document);
}

void PrintText(const Advice& advice, Console& console) {
  const Configuration& chosen = advice.found.configuration;
  const Estimate& estimate = advice.found.estimate;
  const int threads = advice.measurement.timing.threads;
  const auto line = [&console](const char* name, const std::string& value) {
    console.out << absl::StrFormat("  %-14s %s\n", name, value);
  };
  console.out << Printable(advice.measurement.model)
              << absl::StrFormat(": %.6g requests per second, 99 of 100 within %.6g ms\n",
                                 advice.traffic.rate, ToMilliseconds(advice.goal.p99));
  line("replicas", absl::StrCat(chosen.replicas));
  line("instances",
       absl::StrCat(chosen.instances, threads == 0   ? " on a GPU"
                                      : threads == 1 ? " with 1 thread each"
                                                     : absl::StrCat(" with ", threads, " threads each")));
  if (!advice.measurement.precision.empty()) line("precision", Printable(advice.measurement.precision));
  line("batch bound", absl::StrCat(chosen.max_batch_size));
  line("queue bound", absl::StrCat(chosen.max_queue_size, " requests"));
  line("p99",
       absl::StrFormat("%.3g ms (p50 %.3g ms, %.1f items in a batch, instances compute %.0f %% of the time)",
                       ToMilliseconds(estimate.p99), ToMilliseconds(estimate.p50), estimate.mean_batch,
                       100 * estimate.busy));
  console.out << "It " << BreakingText(advice) << ".\n";
  for (const std::string& note : Notes(advice)) console.out << "Note: " << Printable(note) << ".\n";
  console.out << "\n# config.pbtxt\n" << ConfigText(advice) << "\n# values.yaml\n" << ValuesText(advice);
}

// Returns whether all files were written.
bool WriteFiles(const TuneCommand& command, const Advice& advice, Console& console) {
  if (!MakeOutputFolder(command.output, console)) return false;
  const std::string about = absl::StrFormat("# saccade tune %s --p99 %s --rate %.6g\n",
                                            advice.measurement.model, command.p99, advice.traffic.rate);
  const std::pair<const char*, std::string> files[] = {
      {"config.pbtxt",
       absl::StrCat(about, "# In place of these fields of the model's config.pbtxt.\n", ConfigText(advice))},
      {"values.yaml",
       absl::StrCat(about, "# helm upgrade RELEASE deploy/helm/saccade --reuse-values -f values.yaml\n",
                    ValuesText(advice))},
      {"plot.svg", PlotText(advice)}};
  for (const auto& [name, text] : files) {
    const std::string path = absl::StrCat(command.output, "/", name);
    if (absl::Status written = WriteFile(path, {text}); !written.ok()) {
      Complain(console, absl::StrCat(path, ": ", written.message()));
      return false;
    }
    if (!command.quiet) console.err << "wrote " << Printable(path) << std::endl;
  }
  return true;
}

int Save(const TuneCommand& command, const Measurement& measurement, Console& console) {
  if (absl::Status written = WriteFile(command.save, {ToJsonText(measurement)}); !written.ok()) {
    Complain(console, absl::StrCat("--save ", command.save, ": ", written.message()));
    return kExitFailure;
  }
  if (!command.quiet) console.err << "wrote " << Printable(command.save) << std::endl;
  return kExitOk;
}

}  // namespace

int RunTune(const TuneCommand& command, Console& console) {
  std::vector<Measurement> measurements;
  if (const int code = GatherMeasurements(command, console, &measurements); code != kExitOk) return code;
  if (!command.save.empty()) {
    const int code = Save(command, measurements.front(), console);
    if (code != kExitOk || command.p99.empty()) return code;
  }
  if (absl::Status same = CheckSameBuckets(measurements); !same.ok()) {
    Complain(console, same.message());
    return kExitUsage;
  }
  Advice advice;
  if (const int code = ReadTraffic(command, measurements, console, &advice.traffic); code != kExitOk)
    return code;
  absl::Duration p99;
  absl::Duration deadline = absl::InfiniteDuration();
  // The options were checked.
  absl::ParseDuration(command.p99, &p99);
  if (!command.deadline.empty()) absl::ParseDuration(command.deadline, &deadline);
  advice.goal = {.p99 = Nanos(p99), .deadline = Nanos(deadline)};

  std::vector<server::simulation::MeasuredModel> models;
  for (const Measurement& measurement : measurements) models.push_back(ToModel(measurement));
  const server::simulation::Limits limits = {.max_replicas = command.max_replicas,
                                             .max_held_items = MaxHeldItems(measurements.front())};
  const server::simulation::EstimateOptions options = {.seed = static_cast<uint64_t>(command.seed)};
  const auto found = FindSmallest(models, advice.traffic, advice.goal, limits, options);
  if (!found.ok()) {
    Complain(console, found.status().message());
    return kExitFailure;
  }
  advice.found = *found;
  advice.measurement = measurements[found->model];
  advice.many_precisions = std::any_of(measurements.begin(), measurements.end(), [&](const Measurement& one) {
    return one.precision != advice.measurement.precision;
  });
  const server::simulation::MeasuredModel& model = models[found->model];
  advice.breaking = FindBreaking(model, advice.traffic, found->configuration, advice.goal, limits, options);
  for (const double share : kCurve) {
    server::simulation::Traffic at = advice.traffic;
    at.rate *= share;
    advice.curve.emplace_back(at.rate, EstimateOf(model, at, found->configuration, advice.goal, options));
  }
  if (command.format == Format::kJson) {
    PrintJson(advice, console);
  } else {
    PrintText(advice, console);
  }
  if (!command.output.empty() && !WriteFiles(command, advice, console)) return kExitFailure;
  return Flush(console) ? kExitOk : kExitFailure;
}

}  // namespace saccade::client
