#include "server/quantize/held_out.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "server/core/clock.h"
#include "server/engine/forward.h"
#include "server/engine/samples.h"
#include "server/quantize/spread.h"
#include "server/quantize/task_figure.h"

namespace saccade::server {
namespace {

// The part of the items that calibrates, if there are few.
constexpr size_t kItemsPerCalibrating = 4;

}  // namespace

absl::StatusOr<DividedItems> HoldOut(const std::string& folder, std::vector<LabelledItem> items,
                                     size_t max_calibrating, size_t max_held_out) {
  constexpr size_t kMinItems = kMinCalibrationItems + kMinHeldOutItems;
  if (items.size() < kMinItems) {
    return absl::InvalidArgumentError(
        absl::StrCat(folder, ": has ", items.size(), " labelled items; expected at least ", kMinItems, ": ",
                     kMinCalibrationItems, " on which the ranges are measured, and ", kMinHeldOutItems,
                     " others on which the figure is. Label more pictures, or leave out --labels"));
  }
  const size_t calibrating =
      std::min(max_calibrating, std::max(kMinCalibrationItems, items.size() / kItemsPerCalibrating));
  std::vector<size_t> rest(items.size());
  std::iota(rest.begin(), rest.end(), size_t{0});
  const std::vector<size_t> held_out = TakeSpread(rest, std::min(max_held_out, items.size() - calibrating));
  DividedItems divided;
  for (const size_t position : rest) divided.calibrating.push_back(std::move(items[position].files));
  for (const size_t position : held_out) divided.held_out.push_back(std::move(items[position]));
  return divided;
}

std::string ResolutionWarning(models::Task task, size_t items, double keep_within) {
  const FigureKind kind = FigureKindOf(task);
  const double step = 1 / static_cast<double>(items);
  if (!kind.counts_items || keep_within == 0 || step <= keep_within) return "";
  return absl::StrFormat(
      "saccade quantize: %d held-out items measure %s in steps of %.2g %% or more, so a loss of %g %% "
      "(--keep-within) cannot be told; expected at least %d held-out items. Label more, or allow more with "
      "--max-held-out\n",
      items, kind.name, 100 * step, 100 * keep_within, static_cast<int64_t>(std::ceil(1 / keep_within)));
}

absl::StatusOr<double> MeasureFigure(const models::Model& model, const models::Description& description,
                                     const std::vector<LabelledItem>& items,
                                     const std::function<void(size_t items)>& done) {
  const std::unique_ptr<TaskFigure> figure = MakeTaskFigure(description);
  for (size_t i = 0; i < items.size(); ++i) {
    done(i);
    auto item = ReadSample(items[i].files, description.input, Clock::Real());
    if (!item.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat(item.status().message(),
                       "; with --labels every labelled picture has to be readable: repair it, or remove it "
                       "and its label"));
    }
    const auto results = Forward(model, {item->pixels}, {item->placement});
    if (!results.ok()) return results.status();
    if (absl::Status added = figure->Add(items[i], results->front()); !added.ok()) return added;
  }
  return figure->Value();
}

}  // namespace saccade::server
