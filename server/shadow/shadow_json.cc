#include "server/shadow/shadow_json.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "server/shadow/gate.h"

namespace saccade::server {
namespace {

using Json = nlohmann::ordered_json;

std::string TimeText(absl::Time time) {
  return absl::FormatTime(absl::RFC3339_sec, time, absl::UTCTimeZone());
}

Json AsJson(const Disagreement& last) {
  Json json = {{"request", last.request}, {"time", TimeText(last.at)}};
  if (last.trace != TraceId()) json["trace"] = ToHex(last.trace);
  if (last.difference) json["difference"] = *last.difference;
  if (!last.error.empty()) json["error"] = last.error;
  return json;
}

Json AsJson(const std::vector<Disagreement>& differing) {
  Json list = Json::array();
  for (const Disagreement& one : differing) {
    list.push_back(AsJson(one));
    list.back()["number"] = one.number;
    list.back()["picture_bytes"] = one.picture == nullptr ? 0 : one.picture->size();
  }
  return list;
}

// `rule` is as the configuration has it.
Json AsJson(const std::string& rule, const std::optional<GateDecision>& decision) {
  Json json = {{"rule", rule}, {"state", "measuring"}};
  if (!decision) return json;
  json["state"] = decision->promoted ? "promoted" : "refused";
  json["time"] = TimeText(decision->at);
  json["reason"] = decision->reason;
  json["compared"] = decision->measures.compared;
  json["timed"] = decision->measures.timed;
  Json measures = Json::object();
  for (size_t measure = 0; measure < kShadowMeasures.size(); ++measure) {
    const double value = decision->measures.values.at(measure);
    // JSON has no infinity.
    if (std::isfinite(value)) measures[std::string(kShadowMeasures.at(measure).name)] = value;
  }
  json["measures"] = std::move(measures);
  return json;
}

// Names and errors may hold what a client sent, which need not be UTF-8.
std::string TextOf(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

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
  if (report.timed > 0) {
    json["timed"] = report.timed;
    json["timed_requests"] = report.timed_requests;
    json["p50"] = report.p50;
    json["p99"] = report.p99;
  }
  if (report.rule.promote) {
    json["promote"] = AsJson(report.rule.promote->text, report.decision);
    if (!report.decision)
      json["promote"]["reason"] = ProgressOf(*report.rule.promote, report.compared, report.timed);
    json["differing"] = AsJson(report.differing);
  }
  return TextOf(json);
}

std::string ToJson(const Promotion& promotion, const std::string& model) {
  return TextOf({{"model", model},
                 {"version", promotion.replaces},
                 {"shadow", promotion.shadow},
                 {"promote", AsJson(promotion.rule, promotion.decision)}});
}

}  // namespace saccade::server
