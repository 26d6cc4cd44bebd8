// The figure of a task: how right a network's answers to labelled items are.
#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "models/api/description.h"
#include "models/tasks/result.h"
#include "server/quantize/labelled_items.h"

namespace saccade::server {

class TaskFigure {
 public:
  TaskFigure() = default;
  TaskFigure(const TaskFigure&) = delete;
  TaskFigure& operator=(const TaskFigure&) = delete;
  virtual ~TaskFigure() = default;

  // Adds the answer to an item, and reads the item's file of labels if it has one. INVALID_ARGUMENT if that
  // does not fit the answer.
  virtual absl::Status Add(const LabelledItem& item, const models::TaskResult& answer) = 0;
  // The figure over all items that were added. INVALID_ARGUMENT if nothing of them counts.
  virtual absl::StatusOr<double> Value() const = 0;
};

struct FigureKind {
  std::string name;       // as `saccade evaluate` calls it
  bool is_error = false;  // whether smaller is better
  // Whether each item is right or wrong as a whole, so that the figure has steps.
  bool counts_items = false;
};

// REQUIRES for both: CheckTaskHasLabels(task) is OK.
//   classification  top-1: share of the items whose likeliest class is the right one
//   segmentation    mIoU: mean of the intersection over union of the classes that occur, over all pixels of
//   all
//                   items, without the ignored ones
//   stereo          EPE: mean absolute error of the disparity over all pixels of all items that count
FigureKind FigureKindOf(models::Task task);
std::unique_ptr<TaskFigure> MakeTaskFigure(const models::Description& description);

}  // namespace saccade::server
