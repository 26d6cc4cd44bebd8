// Which parts around an ensemble's detections other models see, as config.pbtxt says it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/repository/config_check.h"
#include "server/repository/model_settings.h"

namespace saccade::server {

struct CropRules {
  // 1 to kMaxCropModels, each once.
  std::vector<std::string> models;
  // What is added on each side of a box, as a fraction of the box's width or height; 0 to 2.
  double padding = 0;
  // Detections below are left out; 0 to 1.
  double min_score = 0;
  // The number of detections with crops, the best first; 1 to kMaxCrops.
  int64_t max = 20;
  // Indices of the detector's classes; empty for all.
  std::vector<int64_t> classes = {};
};

constexpr size_t kMaxCropModels = 4;
constexpr int64_t kMaxCrops = 100;

// Reads the parameters `crops`, `crop_padding`, `crop_min_score`, `crop_max` and `crop_classes`; nullopt
// without `crops`. INVALID_ARGUMENT, with the parameter's name and what was expected, if one is wrong.
absl::StatusOr<std::optional<CropRules>> CropRulesOf(const ModelSettings& ensemble);

// Checks the parameters of an ensemble that was read, and adds the models of crops to its steps, without
// tensors, so that they are loaded with it. REQUIRES: the steps are set.
absl::Status ReadCrops(const ConfigCheck& check, ModelSettings* ensemble);

}  // namespace saccade::server
