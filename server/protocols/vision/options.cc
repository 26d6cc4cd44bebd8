#include "server/protocols/vision/options.h"

#include <algorithm>
#include <cstdint>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "server/protocols/vision/errors.h"
#include "server/protocols/vision/explain.h"

namespace saccade::server {
namespace {

constexpr int kMaxTopK = 100'000;
constexpr int kMaxClasses = 10'000;
constexpr int64_t kMaxOutputSide = 16'384;
constexpr int64_t kMaxOutputPixels = int64_t{64} << 20;

absl::Status CheckTopK(absl::string_view field, int top_k) {
  if (top_k >= 0 && top_k <= kMaxTopK) return absl::OkStatus();
  return InvalidField(field, absl::StrCat("is ", top_k, "; expected 0 to ", kMaxTopK));
}

absl::Status CheckUnitInterval(absl::string_view field, float value) {
  // False for NaN.
  if (value >= 0 && value <= 1) return absl::OkStatus();
  return InvalidField(field, absl::StrCat("is ", value, "; expected 0 to 1"));
}

// Checks what detections and actions have in common. `field` is the name of the options.
template <typename Options>
absl::Status CheckFindings(absl::string_view field, const Options& options) {
  absl::Status score = CheckUnitInterval(absl::StrCat(field, ".score_threshold"), options.score_threshold());
  if (!score.ok()) return score;
  if (options.classes_size() > kMaxClasses) {
    return InvalidField(
        absl::StrCat(field, ".classes"),
        absl::StrCat("has ", options.classes_size(), " entries; expected at most ", kMaxClasses));
  }
  return CheckTopK(absl::StrCat(field, ".top_k"), options.top_k());
}

absl::Status CheckClassification(const v1::ClassificationOptions& options) {
  absl::Status threshold =
      CheckUnitInterval("classification.probability_threshold", options.probability_threshold());
  return threshold.ok() ? CheckTopK("classification.top_k", options.top_k()) : threshold;
}

absl::Status CheckDetection(const v1::DetectionOptions& options) {
  if (absl::Status mask = CheckUnitInterval("detection.mask_threshold", options.mask_threshold());
      !mask.ok()) {
    return mask;
  }
  if (!v1::DetectionOptions::Masks_IsValid(options.masks())) {
    return InvalidField("detection.masks",
                        absl::StrCat("is ", options.masks(), "; expected RLE, PNG, POLYGONS or NONE"));
  }
  return CheckFindings("detection", options);
}

absl::Status CheckNetworkSize(absl::string_view field, const v1::PredictRequest& message,
                              const v1::OutputSize& size) {
  if (size.width() != 0 || size.height() != 0) {
    return InvalidField(field, absl::StrCat("is ", size.width(), " x ", size.height(),
                                            " and also the network's size; set only one of them"));
  }
  if (message.has_tiles() && !message.tiles().whole()) {
    return InvalidField(
        field,
        "is the network's size, but the network has seen tiles; set width and height, or omit the tiles");
  }
  if (!message.has_region()) return absl::OkStatus();
  return InvalidField(
      field,
      "is the network's size, but the network has seen only the region; set width and height, or "
      "omit the region");
}

// Used for segmentation and stereo.
template <typename Options>
absl::Status CheckOutputSize(absl::string_view field, const v1::PredictRequest& message,
                             const Options& options) {
  if (!options.has_size()) return absl::OkStatus();
  if (options.size().network()) return CheckNetworkSize(field, message, options.size());
  const int64_t width = options.size().width();
  const int64_t height = options.size().height();
  const bool sides = std::min(width, height) >= 1 && std::max(width, height) <= kMaxOutputSide;
  if (sides && width * height <= kMaxOutputPixels) return absl::OkStatus();
  return InvalidField(field, absl::StrCat("is ", width, " x ", height, "; expected sides of 1 to ",
                                          kMaxOutputSide, ", and at most ", kMaxOutputPixels, " pixels"));
}

// The task that the options are for; nullopt without options.
std::optional<models::Task> TaskOf(v1::PredictRequest::OptionsCase options) {
  switch (options) {
    case v1::PredictRequest::kClassification:
      return models::Task::kClassification;
    case v1::PredictRequest::kDetection:
      return models::Task::kDetection;
    case v1::PredictRequest::kSegmentation:
      return models::Task::kSegmentation;
    case v1::PredictRequest::kStereoOptions:
      return models::Task::kStereo;
    case v1::PredictRequest::kActions:
      return models::Task::kActions;
    case v1::PredictRequest::kRestoration:
      return models::Task::kRestoration;
    case v1::PredictRequest::OPTIONS_NOT_SET:
      break;
  }
  return std::nullopt;
}

// The field that holds a task's options.
absl::string_view FieldOf(models::Task task) {
  const bool map = task == models::Task::kStereo || task == models::Task::kDepth;
  return map ? "stereo_options" : models::TaskName(task);
}

absl::Status CheckKnown(absl::string_view field, const google::protobuf::RepeatedField<int64_t>& classes,
                        const v1::PredictRequest& message, const models::Description& model) {
  const auto unknown = std::find_if(classes.begin(), classes.end(),
                                    [&model](int64_t index) { return index < 0 || index >= model.classes; });
  if (unknown == classes.end()) return absl::OkStatus();
  return InvalidField(field, absl::StrCat("holds ", *unknown, "; model '", message.model(), "' knows 0 to ",
                                          model.classes - 1));
}

}  // namespace

absl::Status CheckOptions(const v1::RestorationOptions& options) {
  if (v1::VolumeShape::Type_IsValid(options.type())) return absl::OkStatus();
  return InvalidField("restoration.type",
                      absl::StrCat("is ", options.type(), "; expected UINT8, UINT16 or FLOAT32"));
}

absl::Status CheckOptions(const v1::PredictRequest& message) {
  if (absl::Status explain = CheckExplain(message.explain()); !explain.ok()) return explain;
  switch (message.options_case()) {
    case v1::PredictRequest::kClassification:
      return CheckClassification(message.classification());
    case v1::PredictRequest::kDetection:
      return CheckDetection(message.detection());
    case v1::PredictRequest::kSegmentation:
      if (v1::SegmentationOptions::Format_IsValid(message.segmentation().format()))
        return CheckOutputSize("segmentation.size", message, message.segmentation());
      return InvalidField("segmentation.format", absl::StrCat("is ", message.segmentation().format(),
                                                              "; expected PNG, RAW or NONE"));
    case v1::PredictRequest::kStereoOptions:
      if (v1::StereoOptions::Format_IsValid(message.stereo_options().format()))
        return CheckOutputSize("stereo_options.size", message, message.stereo_options());
      return InvalidField("stereo_options.format", absl::StrCat("is ", message.stereo_options().format(),
                                                                "; expected PNG_16 or FLOAT"));
    case v1::PredictRequest::kActions:
      return CheckFindings("actions", message.actions());
    case v1::PredictRequest::kRestoration:
      return CheckOptions(message.restoration());
    case v1::PredictRequest::OPTIONS_NOT_SET:
      break;
  }
  return absl::OkStatus();
}

absl::Status CheckOptionsFit(const v1::PredictRequest& message, const models::Description& model) {
  if (absl::Status explain = CheckExplainFits(message, model); !explain.ok()) return explain;
  const std::optional<models::Task> task = TaskOf(message.options_case());
  const bool fits =
      task == model.task || (task == models::Task::kStereo && model.task == models::Task::kDepth);
  if (task.has_value() && !fits && model.task == models::Task::kEmbedding) {
    return InvalidField(FieldOf(*task), absl::StrCat("model '", message.model(),
                                                     "' makes embeddings, which have no options; omit them"));
  }
  if (task.has_value() && !fits) {
    return InvalidField(FieldOf(*task),
                        absl::StrCat("model '", message.model(), "' is for ", models::TaskName(model.task),
                                     "; omit these options, or set '", FieldOf(model.task), "'"));
  }
  if (absl::Status known = CheckKnown("detection.classes", message.detection().classes(), message, model);
      !known.ok()) {
    return known;
  }
  return CheckKnown("actions.classes", message.actions().classes(), message, model);
}

}  // namespace saccade::server
