#include "server/shadow/shadow_json.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "absl/time/time.h"

namespace saccade::server {
namespace {

using Json = nlohmann::ordered_json;

Json AsJson(const ShadowReport::Disagreement& last) {
  Json json = {{"request", last.request},
               {"time", absl::FormatTime(absl::RFC3339_sec, last.at, absl::UTCTimeZone())}};
  if (last.trace != TraceId()) json["trace"] = ToHex(last.trace);
  if (last.difference) json["difference"] = *last.difference;
  if (!last.error.empty()) json["error"] = last.error;
  return json;
}

}  // namespace

std::string ToJson(const ShadowReport& report, const std::string& model, int64_t version) {
  Json dropped = Json::object();
  for (size_t why = 0; why < kShadowLosses.size(); ++why)
    dropped[std::string(kShadowLosses.at(why))] = report.dropped.at(why);
  Json json = {{"model", model},
               {"version", version},
               {"shadow", report.rule.version},
               {"share", report.rule.share},
               {"compared", report.compared},
               {"agreed", report.agreed},
               {"equal", report.equal},
               {"failed", report.failed},
               {"in_flight", report.in_flight},
               {"dropped", std::move(dropped)}};
  if (report.rule.tolerance) json["tolerance"] = *report.rule.tolerance;
  if (report.compared > 0)
    json["agreement"] = static_cast<double>(report.agreed) / static_cast<double>(report.compared);
  if (!report.task.empty()) json["task"] = std::string(report.task);
  if (report.measured > 0) {
    json["mean_difference"] = report.sum_of_differences / static_cast<double>(report.measured);
    json["largest_difference"] = report.largest_difference;
  }
  if (report.last_disagreement) json["last_disagreement"] = AsJson(*report.last_disagreement);
  // Names and errors may hold what a client sent, which need not be UTF-8.
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace saccade::server
