// Answers as pictures, one PNG each. What cannot be decoded or written is told in the status. Thread-safe for
// different paths.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "client/types.h"

namespace saccade::client {

// `picture`, of those that draw on one, is the encoded one that the answer is about.

// The picture with a panel below: a bar and a label a class.
absl::Status DrawClasses(absl::string_view picture, const Classification& answer, const std::string& path);

// The picture with every mask tinted and outlined in its class's colour, every box, and label and score at
// it.
absl::Status DrawDetections(absl::string_view picture, const Detections& answer, const std::string& path);

// The picture under its classes in Pascal VOC's colours, and a legend below.
absl::Status DrawSegmentation(absl::string_view picture, const Segmentation& answer, const std::string& path);

// The disparities in the turbo colour map, black where there is none, and a scale below. `values` are those
// of ReadDisparity.
absl::Status DrawDisparity(const Disparity& answer, const std::vector<float>& values,
                           const std::string& path);

// A lane a class, the best one's first, with a bar for every action over an axis in seconds.
absl::Status DrawTimeline(const Actions& answer, const std::string& path);

// The plane in the middle, 8 bits grey: black and white are where one voxel in a thousand is darker, or
// brighter. What is no number is black.
absl::Status DrawVolume(const Restoration& answer, const std::string& path);

// Every map of the answer's explanation, in colour over the picture, or the region of it that was asked
// about; alone if it cannot be decoded. REQUIRES: there is an explanation.
absl::Status DrawAttention(absl::string_view picture, const std::optional<Region>& region,
                           const Answer& answer, const std::string& path);

// How long requests took, and where.
struct LoadDrawing {
  struct Point {
    // When it was due.
    double seconds = 0;
    double milliseconds = 0;
    bool answered = false;
  };
  struct Stage {
    std::string name;
    // Milliseconds.
    double p50 = 0;
    double p90 = 0;
    double p99 = 0;
  };
  std::string title;
  std::vector<Point> points;
  std::vector<Stage> stages;
};

// A dot a request over an axis in seconds; below it a bar a stage.
absl::Status DrawLoad(const LoadDrawing& load, const std::string& path);

}  // namespace saccade::client
