// Converts task results to tensors, with one function per output.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "server/core/byte_pieces.h"
#include "server/core/items_form.h"
#include "server/core/request.h"

namespace saccade::server {

using HeldResponse = std::shared_ptr<const Response>;

struct Values {
  std::vector<int64_t> shape = {};
  // Little-endian, row by row. For large results it refers to the response, which it keeps alive.
  BytePieces data = {};
};

// Each function REQUIRES at least one result, all of its task. The first extent is the number of items in the
// request, unless stated otherwise.

// Padded form: the second extent is the largest count of any picture of the request, which may be 0; shorter
// lists are filled with zeros. Flat form: the first two extents are merged into one without padding.
Values DetectionCounts(const HeldResponse& response, ItemsForm form);  // INT64 [n], or splits [n + 1]
Values Boxes(const HeldResponse& response, ItemsForm form);            // FP32 [n, most, 4]
Values Scores(const HeldResponse& response, ItemsForm form);           // FP32 [n, most]
Values Labels(const HeldResponse& response, ItemsForm form);           // INT64 [n, most]
// INVALID_ARGUMENT if the masks of the pictures differ in size.
absl::StatusOr<Values> Masks(const HeldResponse& response, ItemsForm form);  // FP32 [n, most, side, side]

// INVALID_ARGUMENT if the pictures differ in the number of values.
absl::StatusOr<Values> Logits(const HeldResponse& response);      // FP32 [n, classes]
absl::StatusOr<Values> Embeddings(const HeldResponse& response);  // FP32 [n, values]
absl::StatusOr<Values> Areas(const HeldResponse& response);       // INT64 [n, classes]

// INVALID_ARGUMENT if the pictures differ in size.
absl::StatusOr<Values> LabelMaps(const HeldResponse& response);      // UINT8 [n, height, width]
absl::StatusOr<Values> DisparityMaps(const HeldResponse& response);  // FP32 [n, height, width]
absl::StatusOr<Values> DepthMaps(const HeldResponse& response);      // FP32 [n, height, width]

// In the same forms as detections. Segments are [start, end] in seconds.
Values ActionCounts(const HeldResponse& response, ItemsForm form);    // INT64 [n], or splits [n + 1]
Values ActionSegments(const HeldResponse& response, ItemsForm form);  // FP32 [n, most, 2]
Values ActionScores(const HeldResponse& response, ItemsForm form);    // FP32 [n, most]
Values ActionLabels(const HeldResponse& response, ItemsForm form);    // INT64 [n, most]

// INVALID_ARGUMENT if the volumes differ in size.
absl::StatusOr<Values> RestoredVolumes(const HeldResponse& response);  // FP32 [n, depth, height, width]

}  // namespace saccade::server
