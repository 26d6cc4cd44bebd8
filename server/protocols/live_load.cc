#include "server/protocols/live_load.h"

#include <unistd.h>

#include <cmath>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "server/core/inflight.h"
#include "server/inference/model_statistics.h"
#include "server/metrics/procfs.h"

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

// "cpu", or "gpu 0, gpu 1"; empty for ensembles, which compute nothing themselves, and for models that are
// not ready.
std::string DeviceOf(const Catalog& catalog, const ModelSnapshot& model) {
  if (model.state != ModelSnapshot::State::kReady || model.ensemble) return "";
  const auto ready = catalog.FindReady(model.name, model.version);
  if (!ready.ok()) return "";
  const std::vector<int>& gpus = (*ready)->settings().gpus;
  if (gpus.empty()) return "cpu";
  return absl::StrJoin(std::set<int>(gpus.begin(), gpus.end()), ", ",
                       [](std::string* text, int gpu) { absl::StrAppend(text, "gpu ", gpu); });
}

const char* StateName(ModelSnapshot::State state) {
  switch (state) {
    case ModelSnapshot::State::kLoading:
      return "LOADING";
    case ModelSnapshot::State::kReady:
      return "READY";
    case ModelSnapshot::State::kUnloading:
    case ModelSnapshot::State::kUnavailable:
      break;
  }
  return "UNAVAILABLE";
}

Json ToJson(const Catalog& catalog, const ModelSnapshot& model) {
  return {{"name", model.name},
          {"version", model.version},
          {"state", StateName(model.state)},
          {"reason", model.reason},
          {"architecture", model.description.architecture},
          {"device", DeviceOf(catalog, model)},
          {"precision", model.precision},
          {"max_batch_size", model.max_batch_size},
          {"load_seconds", absl::ToDoubleSeconds(model.load_duration)}};
}

std::string ReadAll(const char* path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

// What cannot be read is 0.
Json MemoryJson() {
  const auto process = ParseProcessStat(ReadAll("/proc/self/stat"));
  const auto machine = ParseMemory(ReadAll("/proc/meminfo"));
  const auto whole = [](double bytes) { return static_cast<int64_t>(bytes); };
  const auto page = static_cast<double>(sysconf(_SC_PAGESIZE));
  return {{"resident_bytes", process ? whole(process->resident_pages * page) : 0},
          {"total_bytes", machine ? whole(machine->total_bytes) : 0},
          {"available_bytes", machine ? whole(machine->available_bytes) : 0}};
}

HttpResponse Answer(const Catalog& catalog, const Pipeline& pipeline, const LiveLoadOptions& options) {
  std::map<std::pair<std::string, int64_t>, int64_t> queued;
  Json states = Json::array();
  for (const ModelSnapshot& model : catalog.List()) {
    queued[{model.name, model.version}] = model.queued;
    states.push_back(ToJson(catalog, model));
  }
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
      {"server_version", options.server_version},
      {"memory", MemoryJson()},
      {"inflight",
       {{"requests", held.requests}, {"bytes", held.bytes}, {"decoded_bytes", held.decoded_bytes}}},
      {"states", std::move(states)},
      {"models", std::move(models)}};
  HttpResponse response;
  response.body = answer.dump(-1, ' ', false, Json::error_handler_t::replace);
  response.headers.emplace_back("Cache-Control", "no-store");
  return response;
}

}  // namespace

HttpRoute LiveLoadRoute(const Catalog* catalog, const Pipeline* pipeline, const LiveLoadOptions& options) {
  return {.method = "GET",
          .path = "/v1/load",
          .handler = Responding([catalog, pipeline, options](const HttpRequest&) {
            return Answer(*catalog, *pipeline, options);
          }),
          .may_block = true};
}

}  // namespace saccade::server
