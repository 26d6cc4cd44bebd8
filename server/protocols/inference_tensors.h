// Task results as tensors of the Open Inference Protocol, one function an output.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "server/core/byte_pieces.h"
#include "server/core/request.h"

namespace saccade::server {

struct OutputTensor {
  std::vector<int64_t> shape;
  // Little-endian, row by row. Of large results it points into the response, which must outlive it.
  BytePieces data;
};

// Each REQUIRES results of its task, at least one. The first extent is the request's number of pictures.

OutputTensor Logits(const Response& response);  // FP32 [n, classes]

// The second extent is the most that a picture of this request has, which may be 0; zeros stand after a
// picture's last one.
OutputTensor DetectionCounts(const Response& response);  // INT64 [n]
OutputTensor Boxes(const Response& response);            // FP32 [n, most, 4]
OutputTensor Scores(const Response& response);           // FP32 [n, most]
OutputTensor Labels(const Response& response);           // INT64 [n, most]
OutputTensor Masks(const Response& response);            // FP32 [n, most, side, side]

// INVALID_ARGUMENT if the pictures differ in size.
absl::StatusOr<OutputTensor> LabelMaps(const Response& response);      // UINT8 [n, height, width]
absl::StatusOr<OutputTensor> DisparityMaps(const Response& response);  // FP32 [n, height, width]

// As for detections. Segments are [start, end] in seconds.
OutputTensor ActionCounts(const Response& response);    // INT64 [n]
OutputTensor ActionSegments(const Response& response);  // FP32 [n, most, 2]
OutputTensor ActionScores(const Response& response);    // FP32 [n, most]
OutputTensor ActionLabels(const Response& response);    // INT64 [n, most]

// INVALID_ARGUMENT if the volumes differ in size.
absl::StatusOr<OutputTensor> RestoredVolumes(const Response& response);  // FP32 [n, depth, height, width]

OutputTensor Areas(const Response& response);  // INT64 [n, classes]

}  // namespace saccade::server
