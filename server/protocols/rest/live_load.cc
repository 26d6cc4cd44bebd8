#include "server/protocols/rest/live_load.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/synchronization/mutex.h"
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

const char* StepName(LoadStep::Kind kind) {
  switch (kind) {
    case LoadStep::Kind::kWaiting:
      return "waiting";
    case LoadStep::Kind::kChecking:
      return "checking";
    case LoadStep::Kind::kPrecision:
      return "precision";
    case LoadStep::Kind::kReading:
      return "reading";
    case LoadStep::Kind::kTrial:
      return "trial";
    case LoadStep::Kind::kWarmUp:
      break;
  }
  return "warm_up";
}

// Null unless the model is loading.
Json StepJson(const ModelSnapshot& model, absl::Time now) {
  if (model.state != ModelSnapshot::State::kLoading) return nullptr;
  const LoadStep& step = model.load_step;
  const absl::Duration spent = std::max(absl::ZeroDuration(), now - step.since);
  return {{"name", StepName(step.kind)},
          {"done", step.done},
          {"of", step.of},
          {"seconds", absl::ToDoubleSeconds(spent)}};
}

Json ToJson(const Catalog& catalog, const ModelSnapshot& model, absl::Time now) {
  return {{"name", model.name},
          {"version", model.version},
          {"state", StateName(model.state)},
          {"step", StepJson(model, now)},
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
  const auto machine = ParseMemory(ReadAll("/proc/meminfo"));
  const auto whole = [](double bytes) { return static_cast<int64_t>(bytes); };
  return {{"resident_bytes", ResidentBytes()},
          {"total_bytes", machine ? whole(machine->total_bytes) : 0},
          {"available_bytes", machine ? whole(machine->available_bytes) : 0}};
}

// Empty without GPUs. What the driver does not tell is null.
Json GpusJson(const LiveLoadOptions& options) {
  Json gpus = Json::array();
  if (!options.read_gpus) return gpus;
  const auto whole = [](const std::optional<double>& bytes) {
    return bytes ? Json(static_cast<int64_t>(*bytes)) : Json(nullptr);
  };
  for (const GpuReading& gpu : options.read_gpus()) {
    if (gpu.divided) continue;  // Its instances are listed.
    gpus.push_back({{"uuid", gpu.uuid},
                    {"used_bytes", whole(gpu.memory_used_bytes)},
                    {"total_bytes", whole(gpu.memory_total_bytes)},
                    {"utilization", gpu.utilization ? Json(*gpu.utilization) : Json(nullptr)}});
  }
  return gpus;
}

HttpResponse Answer(const Catalog& catalog, const Pipeline& pipeline, const LiveLoadOptions& options) {
  const absl::Time now = pipeline.deps().clock->Now();
  std::map<std::pair<std::string, int64_t>, int64_t> queued;
  Json states = Json::array();
  for (const ModelSnapshot& model : catalog.List()) {
    queued[{model.name, model.version}] = model.queued;
    states.push_back(ToJson(catalog, model, now));
  }
  Json models = Json::array();
  const auto statistics = StatisticsOf(catalog, "", "");
  // Cannot fail for all models.
  for (const ModelStatistics& model : *statistics)
    models.push_back(ToJson(model, queued[{model.model, model.version}]));
  const Inflight held = pipeline.deps().admission->inflight();
  const Json answer = {
      {"time", absl::ToDoubleSeconds(now - absl::UnixEpoch())},
      {"max_message_bytes", options.max_message_bytes},
      {"grpc_port", options.grpc_port},
      {"server_version", options.server_version},
      {"memory", MemoryJson()},
      {"gpus", GpusJson(options)},
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

std::function<std::vector<GpuReading>()> GpuReader(std::unique_ptr<Nvml> nvml) {
  if (nvml == nullptr) return nullptr;
  struct Guarded {
    absl::Mutex mutex;
    std::unique_ptr<Nvml> nvml ABSL_GUARDED_BY(mutex);
  };
  auto guarded = std::make_shared<Guarded>();
  {
    absl::MutexLock lock(&guarded->mutex);
    guarded->nvml = std::move(nvml);
  }
  return [guarded] {
    absl::MutexLock lock(&guarded->mutex);
    return guarded->nvml->Read();
  };
}

HttpRoute LiveLoadRoute(const Catalog* catalog, const Pipeline* pipeline, const LiveLoadOptions& options) {
  return {.method = "GET",
          .path = "/v1/load",
          .handler = Responding([catalog, pipeline, options](const HttpRequest&) {
            return Answer(*catalog, *pipeline, options);
          }),
          .may_block = true};
}

}  // namespace saccade::server
