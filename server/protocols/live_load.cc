#include "server/protocols/live_load.h"

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "server/core/inflight.h"
#include "server/inference/model_statistics.h"

namespace saccade::server {
namespace {

using Json = nlohmann::ordered_json;

Json ToJson(const ModelStatistics& model, int64_t queued) {
  const ModelUsage& usage = model.usage;
  Json passes = Json::object();
  for (const auto& [size, spent] : usage.by_batch_size) passes[absl::StrCat(size)] = spent.count;
  Json latency = Json::array();
  // JSON has no infinity, so the last bound is null.
  for (const auto& [seconds, count] : usage.answered_seconds)
    latency.push_back({std::isfinite(seconds) ? Json(seconds) : Json(nullptr), count});
  Json failures = Json::object();
  for (const auto& [reason, count] : usage.fail_by_reason) failures[std::string(reason)] = count;
  const auto seconds = [](const Spent& spent) { return absl::ToDoubleSeconds(spent.time); };
  return {{"name", model.model},
          {"version", model.version},
          {"queued", queued},
          {"answered", usage.success.count},
          {"failed", usage.fail.count},
          {"failed_by_reason", std::move(failures)},
          {"pictures", usage.pictures},
          {"passes", usage.passes},
          {"seconds",
           {{"request", seconds(usage.success)},
            {"decode", seconds(usage.input)},
            {"queue", seconds(usage.queue)},
            {"infer", seconds(usage.infer)},
            {"encode", seconds(usage.output)}}},
          {"passes_by_batch_size", std::move(passes)},
          {"answered_by_seconds", std::move(latency)}};
}

HttpResponse Answer(const Catalog& catalog, const Pipeline& pipeline, const LiveLoadOptions& options) {
  std::map<std::pair<std::string, int64_t>, int64_t> queued;
  for (const ModelSnapshot& model : catalog.List()) queued[{model.name, model.version}] = model.queued;
  Json models = Json::array();
  const auto statistics = StatisticsOf(catalog, "", "");
  // Cannot fail for all models.
  for (const ModelStatistics& model : *statistics)
    models.push_back(ToJson(model, queued[{model.model, model.version}]));
  const Inflight held = pipeline.deps().admission->inflight();
  const Json answer = {
      {"time", absl::ToDoubleSeconds(pipeline.deps().clock->Now() - absl::UnixEpoch())},
      {"max_message_bytes", options.max_message_bytes},
      {"grpc_port", options.grpc_port},
      {"inflight",
       {{"requests", held.requests}, {"bytes", held.bytes}, {"decoded_bytes", held.decoded_bytes}}},
      {"models", std::move(models)}};
  HttpResponse response;
  response.body = answer.dump(-1, ' ', false, Json::error_handler_t::replace);
  response.headers.emplace_back("Cache-Control", "no-store");
  return response;
}

}  // namespace

HttpRoute LiveLoadRoute(const Catalog* catalog, const Pipeline* pipeline, LiveLoadOptions options) {
  return {.method = "GET",
          .path = "/v1/load",
          .handler = Responding([catalog, pipeline, options](const HttpRequest&) {
            return Answer(*catalog, *pipeline, options);
          }),
          .may_block = true};
}

}  // namespace saccade::server
