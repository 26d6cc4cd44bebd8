// What transformers' classes of image processors do where preprocessor_config.json does not say it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace saccade::models {

// The mean and standard deviation that a class normalises with by default.
enum class Normalization { kNever, kImageNet, kHalf, kClip };

struct ProcessorClass {
  // Without its ending, as in "ViT" for ViTImageProcessor and ViTFeatureExtractor.
  std::string_view name;
  // kNever: the class ignores do_normalize.
  Normalization normalization;
  // The values of its keys that are missing, as a JSON object. A key of this object is one that the class
  // reads.
  std::string_view defaults;
};

// Returns the class named "ViTImageProcessor", "ViTImageProcessorFast", "ViTImageProcessorPil" or
// "ViTFeatureExtractor"; null if it is not known.
const ProcessorClass* FindProcessorClass(std::string_view class_name);

// Returns the names of all known classes, for errors.
std::vector<std::string> ProcessorClassNames();

}  // namespace saccade::models
