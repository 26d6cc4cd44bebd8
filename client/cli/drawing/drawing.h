// Draws results into PNG files. Failures to decode or to write are returned as a status. Thread-safe for
// different paths.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "client/cpp/types.h"

namespace saccade::client {

// `picture` is the encoded picture that the answer is about.

// Draws the picture with a panel below that has a labelled bar for each class.
absl::Status DrawClasses(absl::string_view picture, const Classification& answer, const std::string& path);

// Draws the picture with every mask tinted and outlined in its class's colour, every box, a dot for each
// keypoint, and each label and score at its box.
absl::Status DrawDetections(absl::string_view picture, const Detections& answer, const std::string& path);

// Draws the classes in Pascal VOC's colours over the picture, and a legend below.
absl::Status DrawSegmentation(absl::string_view picture, const Segmentation& answer, const std::string& path);

// Draws the disparities in the turbo colour map, black where there is no value, and a scale below. `values`
// are those of ReadDisparity.
absl::Status DrawDisparity(const Disparity& answer, const std::vector<float>& values,
                           const std::string& path);

// The same for depths, with a scale without a unit.
absl::Status DrawDepth(const DepthMap& answer, const std::vector<float>& values, const std::string& path);

// Draws one lane per class, the best action's first, with a bar for every action over an axis in seconds.
absl::Status DrawTimeline(const Actions& answer, const std::string& path);

// Draws the middle plane in 8-bit grey. The darkest and the brightest thousandth of the voxels are clipped to
// black and white. NaN is black.
absl::Status DrawVolume(const Restoration& answer, const std::string& path);

// Draws every map of the answer's explanation, in colour over the picture or its requested region; without a
// background if the picture cannot be decoded. REQUIRES: answer.explanation is set.
absl::Status DrawAttention(absl::string_view picture, const std::optional<Region>& region,
                           const Answer& answer, const std::string& path);

// The results of a load: latency of each request, and of each stage.
struct LoadDrawing {
  struct Point {
    // When the request was due, in seconds since the start.
    double seconds = 0;
    double milliseconds = 0;
    bool answered = false;
  };
  struct Stage {
    std::string name;
    // In milliseconds.
    double p50 = 0;
    double p90 = 0;
    double p99 = 0;
  };
  std::string title;
  std::vector<Point> points;
  std::vector<Stage> stages;
};

// Draws one dot per request over an axis in seconds, and below one bar per stage.
absl::Status DrawLoad(const LoadDrawing& load, const std::string& path);

}  // namespace saccade::client
