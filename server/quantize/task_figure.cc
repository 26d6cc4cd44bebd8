#include "server/quantize/task_figure.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "models/tasks/classification.h"
#include "server/quantize/disparity_file.h"
#include "server/quantize/mask_file.h"

namespace saccade::server {
namespace {

// Returns the answer as a result of the task. INVALID_ARGUMENT names the item if it is another.
template <typename Result>
absl::StatusOr<const Result*> As(const LabelledItem& item, const models::TaskResult& answer) {
  if (const auto* result = std::get_if<Result>(&answer)) return result;
  const auto* failure = std::get_if<models::Failure>(&answer);
  return absl::InvalidArgumentError(
      absl::StrCat(item.files.front(), ": the network gave no result: ",
                   failure != nullptr ? failure->message : std::string("it is of another task")));
}

class Top1 final : public TaskFigure {
 public:
  absl::Status Add(const LabelledItem& item, const models::TaskResult& answer) override {
    const auto result = As<models::Classification>(item, answer);
    if (!result.ok()) return result.status();
    const auto best = models::TopK(**result, 1);
    right_ += !best.empty() && best.front().index == item.label ? 1 : 0;
    ++items_;
    return absl::OkStatus();
  }
  absl::StatusOr<double> Value() const override {
    if (items_ == 0) return absl::InvalidArgumentError("there are no labelled pictures");
    return static_cast<double>(right_) / static_cast<double>(items_);
  }

 private:
  int64_t right_ = 0;
  int64_t items_ = 0;
};

class MeanIou final : public TaskFigure {
 public:
  explicit MeanIou(int64_t classes)
      : classes_(classes),
        both_(static_cast<size_t>(classes)),
        expected_(static_cast<size_t>(classes)),
        got_(static_cast<size_t>(classes)) {}

  absl::Status Add(const LabelledItem& item, const models::TaskResult& answer) override {
    const auto result = As<models::Segmentation>(item, answer);
    if (!result.ok()) return result.status();
    const models::Segmentation& map = **result;
    const auto mask = ReadMaskFile(item.truth, map.height, map.width, classes_);
    if (!mask.ok()) return mask.status();
    for (size_t i = 0; i < mask->size(); ++i) {
      const uint8_t expected = (*mask)[i];
      const uint8_t got = map.labels[i];
      if (expected == kIgnoredClass || expected >= classes_ || got >= classes_) continue;
      ++expected_[expected];
      ++got_[got];
      both_[expected] += expected == got ? 1 : 0;
    }
    return absl::OkStatus();
  }
  absl::StatusOr<double> Value() const override {
    double sum = 0;
    int64_t occurring = 0;
    for (size_t i = 0; i < both_.size(); ++i) {
      const int64_t either = expected_[i] + got_[i] - both_[i];
      if (either == 0) continue;
      sum += static_cast<double>(both_[i]) / static_cast<double>(either);
      ++occurring;
    }
    if (occurring == 0)
      return absl::InvalidArgumentError(
          absl::StrCat("all pixels of the masks are ", kIgnoredClass, ", ignored; expected classes"));
    return sum / static_cast<double>(occurring);
  }

 private:
  const int64_t classes_;
  // Pixels by class: where it is expected and predicted, expected, and predicted.
  std::vector<int64_t> both_, expected_, got_;
};

class EndPointError final : public TaskFigure {
 public:
  explicit EndPointError(double max_disparity) : max_disparity_(max_disparity) {}

  absl::Status Add(const LabelledItem& item, const models::TaskResult& answer) override {
    const auto result = As<models::Disparity>(item, answer);
    if (!result.ok()) return result.status();
    const models::Disparity& map = **result;
    const auto expected = ReadDisparityFile(item.truth, map.height, map.width, max_disparity_);
    if (!expected.ok()) return expected.status();
    for (size_t i = 0; i < expected->size(); ++i) {
      if (std::isnan((*expected)[i])) continue;
      sum_ += std::abs(static_cast<double>((*expected)[i]) - static_cast<double>(map.values[i]));
      ++pixels_;
    }
    return absl::OkStatus();
  }
  absl::StatusOr<double> Value() const override {
    if (pixels_ == 0)
      return absl::InvalidArgumentError(
          "no pixel has a disparity that counts; expected measured disparities");
    return sum_ / static_cast<double>(pixels_);
  }

 private:
  const double max_disparity_;
  double sum_ = 0;
  int64_t pixels_ = 0;
};

double MaxDisparity(const models::Options& options) {
  const auto found = options.find("max_disparity");
  double max = 0;
  if (found != options.end() && absl::SimpleAtod(found->second, &max)) return max;
  return std::numeric_limits<double>::infinity();
}

}  // namespace

FigureKind FigureKindOf(models::Task task) {
  if (task == models::Task::kClassification) return {"top-1", /*is_error=*/false, /*counts_items=*/true};
  if (task == models::Task::kSegmentation) return {"mIoU", /*is_error=*/false, /*counts_items=*/false};
  return {"EPE", /*is_error=*/true, /*counts_items=*/false};
}

std::unique_ptr<TaskFigure> MakeTaskFigure(const models::Description& description) {
  if (description.task == models::Task::kClassification) return std::make_unique<Top1>();
  if (description.task == models::Task::kSegmentation) return std::make_unique<MeanIou>(description.classes);
  return std::make_unique<EndPointError>(MaxDisparity(description.options));
}

}  // namespace saccade::server
