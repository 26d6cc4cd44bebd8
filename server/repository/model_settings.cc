#include "server/repository/model_settings.h"

#include <algorithm>
#include <utility>

namespace saccade::server {

const char* NameOf(Backend backend) {
  switch (backend) {
    case Backend::kSaccade:
      return "saccade";
    case Backend::kPytorch:
      return "pytorch";
    case Backend::kOnnxruntime:
      return "onnxruntime";
    case Backend::kOpenvino:
      return "openvino";
    case Backend::kEnsemble:
      break;
  }
  return "ensemble";
}

const char* NameOf(Optimize optimize) { return optimize == Optimize::kLatency ? "latency" : "throughput"; }

const char* PlatformOf(Backend backend) {
  switch (backend) {
    case Backend::kPytorch:
      return "pytorch_libtorch";
    case Backend::kOnnxruntime:
      return "onnxruntime_onnx";
    case Backend::kEnsemble:
      return "ensemble";
    case Backend::kSaccade:
    case Backend::kOpenvino:
      break;
  }
  return "";
}

void PlaceOnEveryGpu(int gpus, ModelSettings* settings) {
  std::vector<int> placed;
  for (const int gpu : settings->gpus) {
    if (gpu != kEveryGpu) {
      placed.push_back(gpu);
      continue;
    }
    for (int every = 0; every < std::max(1, gpus); ++every) placed.push_back(every);
  }
  if (placed.empty()) return;
  settings->instances = static_cast<int>(placed.size());
  settings->gpus = std::move(placed);
}

}  // namespace saccade::server
