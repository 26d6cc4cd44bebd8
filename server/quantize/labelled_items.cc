#include "server/quantize/labelled_items.h"

#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "server/quantize/class_list.h"
#include "server/quantize/pixel_labels.h"

namespace saccade::server {
namespace {

absl::StatusOr<std::vector<LabelledItem>> LabelWithClasses(const std::string& pictures,
                                                           const std::string& labels,
                                                           const models::Description& description,
                                                           std::ostream& warnings) {
  const ClassNames classes(description.labels, description.classes);
  std::error_code error;
  if (!std::filesystem::is_directory(labels, error)) return LabelByList(pictures, labels, classes, warnings);
  if (std::filesystem::equivalent(pictures, labels, error))
    return LabelByFolders(pictures, classes, warnings);
  return absl::InvalidArgumentError(
      absl::StrCat(labels,
                   ": is a folder; for a classification expected a list with a line FILE LABEL for each "
                   "picture, or the folder of --pictures itself, with a folder for each class in it"));
}

}  // namespace

absl::Status CheckTaskHasLabels(models::Task task) {
  switch (task) {
    case models::Task::kClassification:
    case models::Task::kSegmentation:
    case models::Task::kStereo:
      return absl::OkStatus();
    case models::Task::kDetection:
      return absl::UnimplementedError(
          "--labels: the AP of boxes and masks is computed by pycocotools, which this program does not have; "
          "expected a network for classification, segmentation or stereo. Quantize without --labels, and "
          "measure what the daemon then serves with saccade evaluate --dataset coco");
    default:
      return absl::UnimplementedError(
          absl::StrCat("--labels: there is no figure for the task ", models::TaskName(task),
                       "; expected a network for classification, segmentation or stereo. Leave out --labels: "
                       "the distance of the answers then decides"));
  }
}

absl::StatusOr<std::vector<LabelledItem>> ListLabelledItems(const std::string& pictures,
                                                            const std::string& labels,
                                                            const models::Description& description,
                                                            std::ostream& warnings) {
  if (description.task == models::Task::kClassification)
    return LabelWithClasses(pictures, labels, description, warnings);
  const PixelLabels kind = description.task == models::Task::kSegmentation
                               ? PixelLabels{"PNG masks", {".png"}}
                               : PixelLabels{"disparities (.pfm, or .png of 16 bits)", {".pfm", ".png"}};
  return LabelByFiles(pictures, labels, kind, description.input, warnings);
}

}  // namespace saccade::server
