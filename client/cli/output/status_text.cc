#include "client/cli/output/status_text.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/output/json.h"
#include "client/cli/output/names.h"
#include "client/cli/output/table.h"

namespace saccade::client {
namespace {

Spent operator-(const Spent& now, const Spent& before) {
  return {now.count - before.count, now.time - before.time};
}

ModelStatistics Difference(const ModelStatistics& now, const ModelStatistics& before) {
  if (now.answered.count < before.answered.count || now.failed.count < before.failed.count ||
      now.passes < before.passes) {
    return now;
  }
  ModelStatistics done = now;
  done.answered = now.answered - before.answered;
  done.failed = now.failed - before.failed;
  done.decode = now.decode - before.decode;
  done.queue = now.queue - before.queue;
  done.infer = now.infer - before.infer;
  done.encode = now.encode - before.encode;
  done.pictures = now.pictures - before.pictures;
  done.passes = now.passes - before.passes;
  for (auto& [size, spent] : done.passes_by_batch_size) {
    const auto earlier = before.passes_by_batch_size.find(size);
    if (earlier != before.passes_by_batch_size.end()) spent = spent - earlier->second;
  }
  return done;
}

double PerSecond(int64_t count, absl::Duration interval) {
  return static_cast<double>(count) / absl::ToDoubleSeconds(interval);
}

nlohmann::ordered_json ToJson(const ModelStatistics& done, const std::optional<absl::Duration>& interval) {
  nlohmann::ordered_json json = {{"answered", done.answered.count},
                                 {"failed", done.failed.count},
                                 {"pictures", done.pictures},
                                 {"passes", done.passes},
                                 {"mean_batch_size", done.MeanBatchSize()},
                                 {"passes_by_batch_size", nlohmann::ordered_json::object()},
                                 {"mean_ms",
                                  {{"request", Milliseconds(done.answered.Mean())},
                                   {"decode", Milliseconds(done.decode.Mean())},
                                   {"queue", Milliseconds(done.queue.Mean())},
                                   {"infer", Milliseconds(done.infer.Mean())},
                                   {"encode", Milliseconds(done.encode.Mean())}}}};
  for (const auto& [size, spent] : done.passes_by_batch_size) {
    if (spent.count > 0) json["passes_by_batch_size"][absl::StrCat(size)] = spent.count;
  }
  if (interval) json["answered_per_second"] = PerSecond(done.answered.count, *interval);
  return json;
}

// "-" if nothing was counted: a mean of 0 would look like a measurement.
std::string MeanOf(const Spent& spent) {
  return spent.count > 0 ? absl::StrFormat("%.1f", absl::ToDoubleMilliseconds(spent.Mean())) : "-";
}

// Formats the three most frequent batch sizes, for example "1 (96%) 2 (4%)".
std::string BatchSizes(const ModelStatistics& done) {
  std::vector<std::pair<int64_t, int64_t>> sizes;
  int64_t passes = 0;
  for (const auto& [size, spent] : done.passes_by_batch_size) {
    if (spent.count > 0) sizes.emplace_back(size, spent.count);
    passes += spent.count;
  }
  std::stable_sort(sizes.begin(), sizes.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  sizes.resize(std::min<size_t>(sizes.size(), 3));
  std::string text;
  for (const auto& [size, count] : sizes) {
    absl::StrAppendFormat(&text, "%s%d (%.0f%%)", text.empty() ? "" : " ", size,
                          100.0 * static_cast<double>(count) / static_cast<double>(passes));
  }
  return text;
}

// Returns whether there are statistics worth printing: a daemon without requests has only zeros.
bool HaveDone(const DaemonStatus& status) {
  return status.interval ||
         std::any_of(status.models.begin(), status.models.end(), [](const ModelStatus& item) {
           return item.model.queued > 0 ||
                  (item.done && item.done->answered.count + item.done->failed.count > 0);
         });
}

std::vector<std::string> FiguresOf(const ModelStatus& item, const std::optional<absl::Duration>& interval) {
  if (!item.done) return std::vector<std::string>(7);
  const ModelStatistics& done = *item.done;
  return {absl::StrCat(item.model.queued),
          interval ? absl::StrFormat("%.1f", PerSecond(done.answered.count, *interval))
                   : WithThousands(done.answered.count),
          WithThousands(done.failed.count),
          MeanOf(done.answered),
          MeanOf(done.queue),
          MeanOf(done.infer),
          BatchSizes(done)};
}

// Why a version is unavailable, and which version of the model serves in its place; or what the rule that may
// promote its shadow version has come to.
std::string ReasonOf(const Model& model, const DaemonStatus& status) {
  if (model.promotion && model.reason.empty()) return TextOf(*model.promotion);
  if (model.state != ModelState::kUnavailable) return model.reason;
  for (auto other = status.models.rbegin(); other != status.models.rend(); ++other) {
    if (other->model.name != model.name || other->model.state != ModelState::kReady) continue;
    return absl::StrCat("version ", other->model.version, " serves in its place: ", model.reason);
  }
  return model.reason;
}

}  // namespace

DaemonStatus Since(const DaemonStatus& before, DaemonStatus now, absl::Duration interval) {
  std::map<std::pair<std::string, int64_t>, const ModelStatistics*> earlier;
  for (const ModelStatus& item : before.models) {
    if (item.done) earlier[{item.model.name, item.model.version}] = &*item.done;
  }
  for (ModelStatus& item : now.models) {
    const auto found = earlier.find({item.model.name, item.model.version});
    if (item.done && found != earlier.end()) item.done = Difference(*item.done, *found->second);
  }
  now.interval = interval;
  return now;
}

std::string StatusJson(const std::string& url, const DaemonStatus& status, bool line) {
  nlohmann::ordered_json document = {{"version", 1},
                                     {"url", url},
                                     {"live", status.live},
                                     {"ready", status.ready},
                                     {"health", HealthName(status.health)},
                                     {"server",
                                      {{"name", status.server.name},
                                       {"version", status.server.version},
                                       {"extensions", status.server.extensions}}}};
  if (status.interval) document["interval_ms"] = Milliseconds(*status.interval);
  document["models"] = nlohmann::ordered_json::array();
  for (const ModelStatus& item : status.models) {
    nlohmann::ordered_json json = {{"name", item.model.name},
                                   {"version", item.model.version},
                                   {"state", StateName(item.model.state)},
                                   {"health", HealthName(item.health)},
                                   {"queued", item.model.queued}};
    if (!item.model.reason.empty()) json["reason"] = item.model.reason;
    if (item.model.promotion) json["promotion"] = ToJson(*item.model.promotion);
    if (item.done) json.update(ToJson(*item.done, status.interval));
    document["models"].push_back(std::move(json));
  }
  return line ? DumpLine(document) : Dump(document);
}

void PrintStatus(Console& console, const std::string& url, const DaemonStatus& status) {
  console.out << Printable(absl::StrCat(url, "  ", status.server.name, " ", status.server.version)) << "  "
              << (status.live ? "live" : "not live") << "  "
              << Paint(console, Tone::kStrong, status.ready ? "ready" : "not ready") << '\n';
  if (status.models.empty()) {
    console.out << "no models\n";
    return;
  }
  std::vector<Column> columns = {{"NAME"}, {"VERSION", true}, {"STATE"}, {"HEALTH"}};
  const bool figures = HaveDone(status);
  if (figures) {
    columns.insert(columns.end(), {{"WAITING", true},
                                   {status.interval ? "ANSWERS/S" : "ANSWERED", true},
                                   {"FAILED", true},
                                   {"MEAN MS", true},
                                   {"QUEUE", true},
                                   {"INFER", true},
                                   {"BATCHES OF"}});
  }
  columns.push_back({""});
  std::vector<std::vector<std::string>> rows;
  rows.reserve(status.models.size());
  for (const ModelStatus& item : status.models) {
    std::vector<std::string>& row =
        rows.emplace_back(std::vector<std::string>{item.model.name, absl::StrCat(item.model.version),
                                                   StateName(item.model.state), HealthName(item.health)});
    if (figures) {
      const std::vector<std::string> done = FiguresOf(item, status.interval);
      row.insert(row.end(), done.begin(), done.end());
    }
    row.push_back(ReasonOf(item.model, status));
  }
  PrintTable(console, columns, rows);
}

}  // namespace saccade::client
