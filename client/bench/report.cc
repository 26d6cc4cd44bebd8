#include "client/bench/report.h"

#include <functional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/output/json.h"
#include "client/cli/output/table.h"
#include "client/load/latency.h"

namespace saccade::client {
namespace {

using Part = std::function<absl::Duration(const LoadSample&)>;

Latency Of(const LoadResult& load, const Part& part) {
  std::vector<absl::Duration> durations;
  durations.reserve(load.samples.size());
  for (const LoadSample& sample : load.samples) durations.push_back(part(sample));
  return Summarise(std::move(durations));
}

struct Row {
  std::string key;
  std::string title;
  const LoadResult* load;
  Part part;
};

const Part kRoundTrip = [](const LoadSample& sample) { return sample.latency(); };

std::vector<Row> Calls(const Overhead& result) {
  return {{"bare_predict", "bare gRPC, Predict", &result.bare_predict, kRoundTrip},
          {"daemon_predict", "daemon, Predict", &result.daemon_predict, kRoundTrip},
          {"bare_server_live", "bare gRPC, ServerLive", &result.bare_live, kRoundTrip},
          {"daemon_server_live", "daemon, ServerLive", &result.daemon_live, kRoundTrip}};
}

// The daemon's measurements of Predict, and the round trip without the forward pass.
std::vector<Row> Stages(const Overhead& result) {
  const LoadResult* daemon = &result.daemon_predict;
  return {
      {"decode", "  decode", daemon, [](const LoadSample& s) { return s.timings.decode; }},
      {"queue", "  queue", daemon, [](const LoadSample& s) { return s.timings.queue; }},
      {"infer", "  infer", daemon, [](const LoadSample& s) { return s.timings.infer; }},
      {"encode", "  encode", daemon, [](const LoadSample& s) { return s.timings.encode; }},
      {"daemon_total", "  total in the daemon", daemon, [](const LoadSample& s) { return s.timings.total; }},
      {"daemon_total_less_infer", "  total less infer", daemon,
       [](const LoadSample& s) { return s.timings.total - s.timings.infer; }},
      {"round_trip_less_infer", "  round trip less infer", daemon,
       [](const LoadSample& s) { return s.latency() - s.timings.infer; }}};
}

double Microseconds(absl::Duration duration) { return absl::ToDoubleMicroseconds(duration); }

double Rate(const LoadResult& load) {
  return static_cast<double>(load.samples.size()) / absl::ToDoubleSeconds(load.elapsed);
}

std::vector<std::string> Cells(const Row& row, bool with_rate) {
  const Latency latency = Of(*row.load, row.part);
  const auto cell = [](absl::Duration duration) { return absl::StrFormat("%.0f", Microseconds(duration)); };
  return {row.title,         with_rate ? absl::StrFormat("%.0f", Rate(*row.load)) : "",
          cell(latency.p50), cell(latency.p90),
          cell(latency.p99), cell(latency.mean)};
}

std::string Compare(const std::string& name, const LoadResult& daemon, const LoadResult& bare) {
  const Latency ours = Of(daemon, kRoundTrip);
  const Latency min = Of(bare, kRoundTrip);
  return absl::StrFormat("%s, daemon against bare: p50 %+.0f us (x %.2f), p99 %+.0f us (x %.2f)", name,
                         Microseconds(ours.p50 - min.p50), absl::FDivDuration(ours.p50, min.p50),
                         Microseconds(ours.p99 - min.p99), absl::FDivDuration(ours.p99, min.p99));
}

nlohmann::ordered_json ToJson(const Latency& latency) {
  return {{"p50_us", Microseconds(latency.p50)},
          {"p90_us", Microseconds(latency.p90)},
          {"p99_us", Microseconds(latency.p99)},
          {"mean_us", Microseconds(latency.mean)}};
}

}  // namespace

void PrintReport(Console& console, const std::vector<Overhead>& results) {
  for (const Overhead& result : results) {
    console.out << Paint(console, Tone::kStrong,
                         absl::StrCat(result.clients, result.clients == 1 ? " client" : " clients",
                                      ", closed loop; microseconds"))
                << '\n';
    std::vector<std::vector<std::string>> rows;
    for (const Row& row : Calls(result)) rows.push_back(Cells(row, true));
    rows.push_back({"of the daemon's Predict:", "", "", "", "", ""});
    for (const Row& row : Stages(result)) rows.push_back(Cells(row, false));
    PrintTable(console,
               {{""}, {"CALLS/S", true}, {"P50", true}, {"P90", true}, {"P99", true}, {"MEAN", true}}, rows);
    console.out << Compare("Predict", result.daemon_predict, result.bare_predict) << '\n'
                << Compare("ServerLive", result.daemon_live, result.bare_live) << "\n\n";
  }
}

std::string ReportJson(const OverheadOptions& options, const std::vector<Overhead>& results) {
  nlohmann::ordered_json document = {{"version", 1},
                                     {"url", options.url},
                                     {"model", options.model},
                                     {"duration_s", options.duration_seconds},
                                     {"rounds", options.rounds},
                                     {"results", nlohmann::ordered_json::array()}};
  for (const Overhead& result : results) {
    nlohmann::ordered_json json = {{"clients", result.clients}};
    for (const Row& row : Calls(result)) {
      json[row.key] = ToJson(Of(*row.load, row.part));
      json[row.key]["calls"] = row.load->samples.size();
      json[row.key]["calls_per_s"] = Rate(*row.load);
    }
    for (const Row& row : Stages(result)) json["stages"][row.key] = ToJson(Of(*row.load, row.part));
    document["results"].push_back(std::move(json));
  }
  return Dump(document);
}

}  // namespace saccade::client
