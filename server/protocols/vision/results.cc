#include "server/protocols/vision/results.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <limits>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "models/tasks/classification.h"
#include "models/tasks/mask.h"
#include "server/encode/canvas.h"
#include "server/encode/disparity.h"
#include "server/encode/label_map.h"
#include "server/encode/volume.h"
#include "server/pictures/still_wanted.h"
#include "server/protocols/answer_size.h"
#include "server/protocols/vision/errors.h"
#include "server/protocols/vision/masks.h"
#include "server/protocols/vision/volumes.h"

namespace saccade::server {
namespace {

constexpr int kDefaultTopK = 5;
constexpr float kDefaultMaskThreshold = 0.5F;
// The value of label maps outside of the region, as in common data sets.
constexpr uint8_t kNoClass = 255;

// The part of the picture that the model has seen.
struct Part {
  bool all = true;
  int64_t x = 0;
  int64_t y = 0;
  models::Size whole;
  // The size that the part was scaled to.
  models::Size scaled;
};

Part PartOf(const SentItem& sent) {
  const models::Size whole{sent.height, sent.width};
  if (!sent.region) return {.whole = whole, .scaled = sent.scaled};
  return {.all = false, .x = sent.region->x, .y = sent.region->y, .whole = whole, .scaled = sent.scaled};
}

// A result's map in the requested form: placed on the whole picture if only a part was seen, and in the
// requested size. Errors are those of `wanted`.
template <typename Value, typename Options>
absl::StatusOr<std::vector<Value>> Laid(std::vector<Value> values, models::Size& size, const Part& part,
                                        Value beyond, const Options& options, const StillWanted& wanted) {
  if (!part.all) {
    values = OnCanvas(values, size, part.x, part.y, part.whole, beyond);
    size = part.whole;
  }
  if (!options.has_size()) return values;
  const models::Size asked =
      options.size().network() ? part.scaled : models::Size{options.size().height(), options.size().width()};
  auto resized = Nearest(values, size, asked, wanted);
  if (resized.ok()) size = asked;
  return resized;
}

// Empty if the model has no class names.
std::string LabelOf(const models::Description& model, int64_t index) {
  return model.labels.empty() ? std::string() : model.labels.at(index);
}

void SetClasses(const models::Classification& result, const models::Description& model,
                const v1::ClassificationOptions& options, v1::Classification* message) {
  const int top_k = options.top_k() == 0 ? kDefaultTopK : options.top_k();
  for (const models::ClassScore& score : models::TopK(result, top_k)) {
    if (score.probability < options.probability_threshold()) break;
    v1::Classification::Class* out = message->add_classes();
    out->set_index(score.index);
    out->set_label(LabelOf(model, score.index));
    out->set_probability(score.probability);
    out->set_logit(score.logit);
  }
}

// A mask is drawn with a probability and a byte for each pixel of its box.
constexpr int64_t kBytesOfMaskPixel = 5;
constexpr int64_t kMaxMaskPixels = int64_t{1} << 26;
// The masks of an answer together: some seconds of a core.
constexpr int64_t kMaxPixelsOfMasks = int64_t{1} << 30;

// Draws the mask on the whole picture, of which `part` was seen.
// Adds its pixels to `drawn`, unless they are too many.
absl::Status DrawMask(const models::Detection& detection, const models::Detections& all,
                      const Response& response, const Part& part, const v1::DetectionOptions& options,
                      std::atomic<int64_t>& drawn, v1::Detection* message) {
  // The drawn part is a little larger than the box, which lies within the picture.
  const double grown = 1 + 2.0 / static_cast<double>(std::max<int64_t>(1, all.mask_side));
  const double width = std::min(double(all.width), grown * (double{detection.x_max} - detection.x_min) + 2);
  const double height = std::min(double(all.height), grown * (double{detection.y_max} - detection.y_min) + 2);
  if (width * height > static_cast<double>(kMaxMaskPixels)) {
    return InvalidField("detection.masks", absl::StrCat("would have ", static_cast<int64_t>(width * height),
                                                        " pixels for one finding; at most ", kMaxMaskPixels,
                                                        " are drawn, so ask for NONE or for a region"));
  }
  const auto pixels = static_cast<int64_t>(width * height);
  if (drawn.fetch_add(pixels) + pixels > kMaxPixelsOfMasks) {
    drawn -= pixels;
    return InvalidField("detection.masks", absl::StrCat("would have more than ", kMaxPixelsOfMasks,
                                                        " pixels together; ask for fewer findings (top_k, "
                                                        "score_threshold), for NONE or for a region"));
  }
  if (response.take_memory) {
    absl::Status taken = response.take_memory(kBytesOfMaskPixel * pixels);
    if (!taken.ok()) return taken;
  }
  models::MaskRegion region = models::PasteMask(detection, all.mask_side, all.height, all.width);
  region.x += part.x;
  region.y += part.y;
  const models::Size whole = part.all ? models::Size{all.height, all.width} : part.whole;
  const float threshold = options.has_mask_threshold() ? options.mask_threshold() : kDefaultMaskThreshold;
  return SetMask(region, whole, options.masks(), threshold, response.still_wanted, message);
}

// The options' filters.
template <typename Options>
class Filter {
 public:
  explicit Filter(const Options& options)
      : min_score_(options.score_threshold()), classes_(options.classes().begin(), options.classes().end()) {}

  template <typename Finding>
  bool Accepts(const Finding& finding) const {
    return finding.score >= min_score_ && (classes_.empty() || classes_.contains(finding.label));
  }

 private:
  const float min_score_;
  // A request may name thousands, and there may be thousands of findings.
  const absl::flat_hash_set<int64_t> classes_;
};

absl::Status SetDetections(const models::Detections& result, const Response& response, const Part& part,
                           const v1::DetectionOptions& options, v1::Detections* message) {
  const models::Description& model = *response.description;
  const bool masks = options.masks() != v1::DetectionOptions::NONE;
  const Filter filter(options);
  std::atomic<int64_t> own_pixels{0};
  std::atomic<int64_t>& pixels_of_masks =
      response.mask_pixels == nullptr ? own_pixels : *response.mask_pixels;
  for (const models::Detection& detection : result.items) {
    if (options.top_k() > 0 && message->detections_size() == options.top_k()) break;
    if (!filter.Accepts(detection)) continue;
    v1::Detection* out = message->add_detections();
    v1::Detection::Box* box = out->mutable_box();
    box->set_x_min(detection.x_min + static_cast<float>(part.x));
    box->set_y_min(detection.y_min + static_cast<float>(part.y));
    box->set_x_max(detection.x_max + static_cast<float>(part.x));
    box->set_y_max(detection.y_max + static_cast<float>(part.y));
    out->set_score(detection.score);
    out->set_class_index(detection.label);
    out->set_label(LabelOf(model, detection.label));
    for (const models::Keypoint& point : detection.keypoints) {
      v1::Keypoint* one = out->add_keypoints();
      one->set_x(point.x + static_cast<float>(part.x));
      one->set_y(point.y + static_cast<float>(part.y));
      one->set_score(point.score);
    }
    if (!masks || detection.mask.empty()) continue;
    if (response.still_wanted) {
      if (absl::Status wanted = response.still_wanted(); !wanted.ok()) return wanted;
    }
    absl::Status drawn = DrawMask(detection, result, response, part, options, pixels_of_masks, out);
    if (!drawn.ok()) return drawn;
  }
  return absl::OkStatus();
}

void SetAreas(const models::Segmentation& result, const models::Description& model,
              v1::Segmentation* message) {
  std::vector<int64_t> classes(result.areas.size());
  std::iota(classes.begin(), classes.end(), 0);
  std::erase_if(classes, [&](int64_t index) { return result.areas[index] == 0; });
  std::stable_sort(classes.begin(), classes.end(),
                   [&](int64_t a, int64_t b) { return result.areas[a] > result.areas[b]; });
  for (const int64_t index : classes) {
    v1::Segmentation::Area* area = message->add_areas();
    area->set_class_index(index);
    area->set_label(LabelOf(model, index));
    area->set_pixels(result.areas[index]);
    area->set_fraction(static_cast<float>(static_cast<double>(result.areas[index]) /
                                          static_cast<double>(result.height * result.width)));
  }
}

absl::Status SetSegmentation(const models::Segmentation& result, const Response& response, const Part& part,
                             const v1::SegmentationOptions& options, v1::Segmentation* message) {
  const v1::SegmentationOptions::Format format =
      options.format() == v1::SegmentationOptions::FORMAT_UNSPECIFIED ? v1::SegmentationOptions::PNG
                                                                      : options.format();
  message->set_format(format);
  SetAreas(result, *response.description, message);
  models::Size size{result.height, result.width};
  models::Segmentation laid;
  const bool as_it_is = part.all && !options.has_size();
  if (!as_it_is && format != v1::SegmentationOptions::NONE) {
    auto labels = Laid(result.labels, size, part, kNoClass, options, response.still_wanted);
    if (!labels.ok()) return labels.status();
    laid.labels = *std::move(labels);
    laid.height = size.height;
    laid.width = size.width;
  } else if (!part.all) {
    size = part.whole;
  }
  message->set_width(static_cast<int32_t>(size.width));
  message->set_height(static_cast<int32_t>(size.height));
  if (format == v1::SegmentationOptions::NONE) return absl::OkStatus();
  const models::Segmentation& shown = as_it_is ? result : laid;
  auto map = format == v1::SegmentationOptions::PNG ? LabelMapPng(shown, response.still_wanted)
                                                    : LabelMapBytes(shown, response.still_wanted);
  if (!map.ok()) return map.status();
  message->set_label_map(*std::move(map));
  return absl::OkStatus();
}

absl::Status SetDisparity(const models::Disparity& result, const Response& response, const Part& part,
                          const v1::StereoOptions& options, v1::Disparity* message) {
  const v1::StereoOptions::Format format = options.format() == v1::StereoOptions::FORMAT_UNSPECIFIED
                                               ? v1::StereoOptions::PNG_16
                                               : options.format();
  models::Disparity laid;
  const bool as_it_is = part.all && !options.has_size();
  if (!as_it_is) {
    models::Size size{result.height, result.width};
    auto values = Laid(result.values, size, part, std::numeric_limits<float>::quiet_NaN(), options,
                       response.still_wanted);
    if (!values.ok()) return values.status();
    laid.values = *std::move(values);
    laid.height = size.height;
    laid.width = size.width;
  }
  const models::Disparity& shown = as_it_is ? result : laid;
  auto map = format == v1::StereoOptions::PNG_16 ? DisparityPng(shown, response.still_wanted)
                                                 : DisparityFloats(shown, response.still_wanted);
  if (!map.ok()) return map.status();
  message->set_width(static_cast<int32_t>(shown.width));
  message->set_height(static_cast<int32_t>(shown.height));
  message->set_map(*std::move(map));
  message->set_format(format);
  const auto [min, max] = std::minmax_element(result.values.begin(), result.values.end());
  message->set_min(*min);
  message->set_max(*max);
  const double sum = std::accumulate(result.values.begin(), result.values.end(), 0.0);
  message->set_mean(static_cast<float>(sum / static_cast<double>(result.values.size())));
  return absl::OkStatus();
}

void SetActions(const models::Actions& result, const Response& response, const v1::ActionOptions& options,
                v1::Actions* message) {
  const double rate = response.sent.at(0).frames_per_second;
  message->set_frames(static_cast<int32_t>(result.frames));
  message->set_frames_per_second(rate);
  const Filter filter(options);
  for (const models::Action& action : result.items) {
    if (options.top_k() > 0 && message->actions_size() == options.top_k()) break;
    if (!filter.Accepts(action)) continue;
    v1::Actions::Action* out = message->add_actions();
    out->set_start_seconds(action.start / rate);
    out->set_end_seconds(action.end / rate);
    out->set_start_frame(action.start);
    out->set_end_frame(action.end);
    out->set_score(action.score);
    out->set_class_index(action.label);
    out->set_label(LabelOf(*response.description, action.label));
  }
}

}  // namespace

VoxelType WantedType(const v1::RestorationOptions& options, const Response& response) {
  return TypeOf(options.type()).value_or(response.sent.at(0).voxels);
}

void SetRestoration(const models::Restoration& result, VoxelType type, v1::Restoration* message) {
  v1::VolumeShape* shape = message->mutable_shape();
  shape->set_depth(static_cast<int32_t>(result.depth));
  shape->set_height(static_cast<int32_t>(result.height));
  shape->set_width(static_cast<int32_t>(result.width));
  shape->set_type(TypeOf(type));
  const auto [min, max] = std::minmax_element(result.values.begin(), result.values.end());
  message->set_min(*min);
  message->set_max(*max);
}

absl::Status SetResult(const Response& response, const v1::PredictRequest& request,
                       v1::PredictResponse* message) {
  const models::TaskResult& result = response.results.at(0);
  const models::Description& model = *response.description;
  const Part part = PartOf(response.sent.at(0));
  if (const auto* classes = std::get_if<models::Classification>(&result)) {
    SetClasses(*classes, model, request.classification(), message->mutable_classification());
    return absl::OkStatus();
  }
  if (const auto* detections = std::get_if<models::Detections>(&result)) {
    return SetDetections(*detections, response, part, request.detection(), message->mutable_detections());
  }
  if (const auto* segmentation = std::get_if<models::Segmentation>(&result)) {
    return SetSegmentation(*segmentation, response, part, request.segmentation(),
                           message->mutable_segmentation());
  }
  if (const auto* actions = std::get_if<models::Actions>(&result)) {
    SetActions(*actions, response, request.actions(), message->mutable_actions());
    return absl::OkStatus();
  }
  if (const auto* restoration = std::get_if<models::Restoration>(&result)) {
    const VoxelType type = WantedType(request.restoration(), response);
    auto voxels = VoxelBytes(*restoration, type);
    if (!voxels.ok()) return voxels.status();
    SetRestoration(*restoration, type, message->mutable_restoration());
    message->mutable_restoration()->set_voxels(*std::move(voxels));
    return absl::OkStatus();
  }
  if (const auto* embedding = std::get_if<models::Embedding>(&result)) {
    message->mutable_embedding()->mutable_values()->Add(embedding->values.begin(), embedding->values.end());
    return absl::OkStatus();
  }
  return SetDisparity(std::get<models::Disparity>(result), response, part, request.stereo_options(),
                      message->mutable_disparity());
}

absl::Status CheckDetectionsSize(int64_t bytes, int64_t max) {
  return CheckAnswerSize(static_cast<size_t>(bytes), max,
                         "ask for fewer detections (detection.top_k, score_threshold) or none of their masks "
                         "(detection.masks NONE)");
}

absl::Status CheckSize(const v1::PredictResponse& message, int64_t max, int64_t around) {
  absl::string_view instead;
  if (message.explanation().ByteSizeLong() > static_cast<size_t>(max) / 2) {
    return CheckAnswerSize(message.ByteSizeLong() + static_cast<size_t>(around), max,
                           "ask for fewer maps: explain.max_maps");
  }
  switch (message.result_case()) {
    case v1::PredictResponse::kClassification:
      instead = "ask for fewer classes: classification.top_k";
      break;
    case v1::PredictResponse::kDetections:
      return CheckDetectionsSize(static_cast<int64_t>(message.ByteSizeLong()) + around, max);
    case v1::PredictResponse::kSegmentation:
      instead = "ask for segmentation.format PNG, or NONE for the areas alone, or send a smaller picture";
      break;
    case v1::PredictResponse::kDisparity:
      instead = "ask for stereo_options.format PNG_16, or send smaller pictures";
      break;
    case v1::PredictResponse::kActions:
      instead = "ask for fewer actions (actions.top_k, score_threshold)";
      break;
    case v1::PredictResponse::kRestoration:
      instead = "call Restore, which sends it in parts";
      break;
    case v1::PredictResponse::kEmbedding:
    case v1::PredictResponse::RESULT_NOT_SET:
      break;
  }
  return CheckAnswerSize(message.ByteSizeLong() + static_cast<size_t>(around), max, instead);
}

}  // namespace saccade::server
