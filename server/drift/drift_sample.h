// Features of one item of a request and of its result, from which drift is computed.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "models/api/placement.h"
#include "models/tasks/result.h"
#include "server/core/byte_pieces.h"

namespace saccade::server {

// A feature with values on a scale. Its values are counted in kDriftBins bins.
enum class Feature {
  // Logarithm to the base 2 of the picture's pixels.
  kPixels,
  // Mean of the network's input, 0 (black) to 1 (white).
  kBrightness,
  // Standard deviation of it.
  kContrast,
  // Logarithm to the base 2 of the mean difference between a pixel and its neighbours: low if blurred.
  kSharpness,
  // The highest probability, 0 to 1; 0 if nothing was found.
  kScore,
  // Detections or actions.
  kFound,
};

inline constexpr size_t kFeatures = 6;
inline constexpr size_t kDriftBins = 16;

// "pixels", "brightness", "contrast", "sharpness", "score", "found".
std::string_view NameOf(Feature feature);

// The bin of a value; the first and the last bin also take what lies outside the scale.
size_t BinOf(Feature feature, double value);

struct DriftSample {
  // By Feature; nullopt where the model or the item has none.
  std::array<std::optional<double>, kFeatures> values;
  // Classes of the answer with their shares: 1 for each label or detection, the share of the area for a
  // segmentation.
  std::vector<std::pair<int64_t, double>> classes;
  // Equal for equal network inputs; 0 if it is not known.
  uint64_t fingerprint = 0;

  void Set(Feature feature, double value) { values[static_cast<size_t>(feature)] = value; }
};

// Reads at most 64 x 64 pixels of a picture, the first frame of a clip or the left picture of a pair, as the
// network gets them, whatever their size. Does nothing if `pixels` are not in one piece or have no room for
// the bucket.
void SampleInput(const models::ImageInput& input, const models::Placement& placement,
                 const BytePieces& pixels, DriftSample& sample);

void SampleAnswer(const models::TaskResult& result, DriftSample& sample);

}  // namespace saccade::server
