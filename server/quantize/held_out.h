// Labelled items with which the ranges are not measured: they say what quantizing costs.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "models/api/description.h"
#include "models/api/model.h"
#include "server/quantize/calibration_items.h"
#include "server/quantize/labelled_items.h"

namespace saccade::server {

// Fewer say nothing about the figure.
inline constexpr size_t kMinHeldOutItems = 8;

struct DividedItems {
  std::vector<ItemFiles> calibrating;
  std::vector<LabelledItem> held_out;
};

// Holds out up to `max_held_out` of the items, evenly spread. Leaves at least a quarter of the items to
// calibrate, or `max_calibrating` if that is less. INVALID_ARGUMENT, naming `folder`, if there are fewer than
// kMinCalibrationItems and kMinHeldOutItems together.
absl::StatusOr<DividedItems> HoldOut(const std::string& folder, std::vector<LabelledItem> items,
                                     size_t max_calibrating, size_t max_held_out);

// Returns a warning, with a line break, if each of `items` is such a share of the figure that a loss of
// `keep_within` cannot be told; "" if not.
std::string ResolutionWarning(models::Task task, size_t items, double keep_within);

// Returns the figure of `model` on the items, each of which is read, computed and let go. Calls `done` before
// each, with the number of those before it. Errors name the file. Blocks for a pass of each item.
absl::StatusOr<double> MeasureFigure(const models::Model& model, const models::Description& description,
                                     const std::vector<LabelledItem>& items,
                                     const std::function<void(size_t items)>& done);

}  // namespace saccade::server
