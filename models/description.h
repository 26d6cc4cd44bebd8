// What a model says about itself before it is run: what goes in, what comes out.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "models/options.h"

namespace saccade::models {

// How a picture becomes the network's input: decoded to 8-bit, its shorter side resized (bilinear,
// anti-aliased) to `resize_short_side`, the centre cropped to height x width, values divided by 255, then
// (value - mean) / std per channel.
struct ImageInput {
  int64_t height = 224;
  int64_t width = 224;
  int64_t resize_short_side = 256;
  bool center_crop = true;
  std::array<float, 3> mean = {0.485F, 0.456F, 0.406F};
  std::array<float, 3> std = {0.229F, 0.224F, 0.225F};
  bool rgb = true;  // channel order of the tensor; false means BGR
};

struct Description {
  std::string architecture;
  std::string task = "classification";
  ImageInput input;
  int64_t classes = 0;
  std::vector<std::string> labels;  // empty, or one per class
  Options options;                  // every option of the architecture, defaults filled in
  int64_t parameters = 0;           // all learned parameters, biases and batch norms included
};

}  // namespace saccade::models
