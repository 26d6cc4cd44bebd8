#include "client/messages.h"

#include <string>

#include "absl/strings/str_cat.h"

namespace saccade::client {
namespace {

using Result = v1::PredictResponse::ResultCase;

absl::Duration FromProto(const google::protobuf::Duration& duration) {
  return absl::Seconds(duration.seconds()) + absl::Nanoseconds(duration.nanos());
}

ModelState FromProto(v1::Model::State state) {
  switch (state) {
    case v1::Model::LOADING:
      return ModelState::kLoading;
    case v1::Model::READY:
      return ModelState::kReady;
    case v1::Model::UNAVAILABLE:
      return ModelState::kUnavailable;
    default:
      return ModelState::kUnknown;
  }
}

v1::PredictRequest StartRequest(absl::string_view model, const RequestOptions& options) {
  v1::PredictRequest request;
  request.set_model(std::string(model));
  request.set_version(options.version);
  request.set_request_id(options.request_id);
  request.set_priority(options.priority);
  return request;
}

// In the words of the client's functions.
const char* NameOf(Result result) {
  switch (result) {
    case Result::kClassification:
      return "a classification";
    case Result::kDetections:
      return "detections";
    case Result::kSegmentation:
      return "a segmentation";
    case Result::kDisparity:
      return "a disparity";
    case Result::RESULT_NOT_SET:
      break;
  }
  return "nothing that this client knows";
}

void Read(const v1::Classification& proto, Classification& result) {
  for (const v1::Classification::Class& item : proto.classes()) {
    result.classes.push_back({item.index(), item.label(), item.probability(), item.logit()});
  }
}

void Read(const v1::Detections& proto, Detections& result) {
  for (const v1::Detection& item : proto.detections()) {
    Detection& added = result.items.emplace_back();
    added.box = {item.box().x_min(), item.box().y_min(), item.box().x_max(), item.box().y_max()};
    added.score = item.score();
    added.class_index = item.class_index();
    added.label = item.label();
    if (!item.has_mask()) continue;
    const v1::RleMask& mask = item.mask();
    added.mask = RleMask{mask.height(), mask.width(), mask.counts(), mask.area()};
  }
}

void Read(const v1::Segmentation& proto, Segmentation& result) {
  result.width = proto.width();
  result.height = proto.height();
  result.format = proto.format() == v1::SegmentationOptions::RAW    ? LabelMapFormat::kRaw
                  : proto.format() == v1::SegmentationOptions::NONE ? LabelMapFormat::kNone
                                                                    : LabelMapFormat::kPng;
  result.label_map = proto.label_map();
  for (const v1::Segmentation::Area& area : proto.areas()) {
    result.areas.push_back({area.class_index(), area.label(), area.pixels(), area.fraction()});
  }
}

void Read(const v1::Disparity& proto, Disparity& result) {
  result.width = proto.width();
  result.height = proto.height();
  result.format =
      proto.format() == v1::StereoOptions::FLOAT ? DisparityFormat::kFloat : DisparityFormat::kPng16;
  result.map = proto.map();
  result.least = proto.least();
  result.most = proto.most();
  result.mean = proto.mean();
}

template <typename TaskAnswer, typename Proto>
absl::StatusOr<TaskAnswer> ReadAs(Result wanted, const v1::PredictResponse& response,
                                  const Proto& (v1::PredictResponse::*part)() const) {
  if (response.result_case() != wanted) {
    return absl::InternalError(absl::StrCat("model '", response.model(), "' answered with ",
                                            NameOf(response.result_case()), " instead of ", NameOf(wanted),
                                            "; is its task another one? (saccade models tells)"));
  }
  TaskAnswer result;
  result.model = response.model();
  result.version = response.version();
  result.request_id = response.request_id();
  result.timings = ReadTimings(response);
  result.batch_size = response.batch_size();
  result.picture_width = response.picture_width();
  result.picture_height = response.picture_height();
  Read((response.*part)(), result);
  return result;
}

}  // namespace

v1::PredictRequest ToRequest(absl::string_view model, absl::string_view picture,
                             const ClassifyOptions& options) {
  v1::PredictRequest request = StartRequest(model, options.request);
  request.set_encoded(picture.data(), picture.size());
  request.mutable_classification()->set_top_k(options.top_k);
  return request;
}

v1::PredictRequest ToRequest(absl::string_view model, absl::string_view picture,
                             const DetectOptions& options) {
  v1::PredictRequest request = StartRequest(model, options.request);
  request.set_encoded(picture.data(), picture.size());
  v1::DetectionOptions* detection = request.mutable_detection();
  if (options.score_threshold) detection->set_score_threshold(*options.score_threshold);
  detection->set_top_k(options.top_k);
  for (const int64_t index : options.classes) detection->add_classes(index);
  detection->set_masks(options.masks ? v1::DetectionOptions::RLE : v1::DetectionOptions::NONE);
  if (options.mask_threshold) detection->set_mask_threshold(*options.mask_threshold);
  return request;
}

v1::PredictRequest ToRequest(absl::string_view model, absl::string_view picture,
                             const SegmentOptions& options) {
  v1::PredictRequest request = StartRequest(model, options.request);
  request.set_encoded(picture.data(), picture.size());
  request.mutable_segmentation()->set_format(
      options.format == LabelMapFormat::kPng   ? v1::SegmentationOptions::PNG
      : options.format == LabelMapFormat::kRaw ? v1::SegmentationOptions::RAW
                                               : v1::SegmentationOptions::NONE);
  return request;
}

v1::PredictRequest ToRequest(absl::string_view model, absl::string_view left, absl::string_view right,
                             const StereoOptions& options) {
  v1::PredictRequest request = StartRequest(model, options.request);
  request.mutable_stereo()->mutable_left()->set_encoded(left.data(), left.size());
  request.mutable_stereo()->mutable_right()->set_encoded(right.data(), right.size());
  request.mutable_stereo_options()->set_format(
      options.format == DisparityFormat::kFloat ? v1::StereoOptions::FLOAT : v1::StereoOptions::PNG_16);
  return request;
}

template <>
absl::StatusOr<Classification> FromResponse<Classification>(const v1::PredictResponse& response) {
  return ReadAs<Classification>(Result::kClassification, response, &v1::PredictResponse::classification);
}

template <>
absl::StatusOr<Detections> FromResponse<Detections>(const v1::PredictResponse& response) {
  return ReadAs<Detections>(Result::kDetections, response, &v1::PredictResponse::detections);
}

template <>
absl::StatusOr<Segmentation> FromResponse<Segmentation>(const v1::PredictResponse& response) {
  return ReadAs<Segmentation>(Result::kSegmentation, response, &v1::PredictResponse::segmentation);
}

template <>
absl::StatusOr<Disparity> FromResponse<Disparity>(const v1::PredictResponse& response) {
  return ReadAs<Disparity>(Result::kDisparity, response, &v1::PredictResponse::disparity);
}

Timings ReadTimings(const v1::PredictResponse& response) {
  Timings result;
  result.decode = FromProto(response.timings().decode());
  result.queue = FromProto(response.timings().queue());
  result.infer = FromProto(response.timings().infer());
  result.total = FromProto(response.timings().total());
  return result;
}

Model FromProto(const v1::Model& model) {
  Model result;
  result.name = model.name();
  result.version = model.version();
  result.state = FromProto(model.state());
  result.reason = model.reason();
  result.architecture = model.architecture();
  result.task = model.task();
  result.options = {model.options().begin(), model.options().end()};
  result.input_width = model.input_width();
  result.input_height = model.input_height();
  result.buckets = model.buckets();
  result.views = model.views();
  result.classes = model.classes();
  result.labels = {model.labels().begin(), model.labels().end()};
  result.max_batch_size = model.max_batch_size();
  result.queued = model.queued();
  result.load_duration = FromProto(model.load_duration());
  return result;
}

}  // namespace saccade::client
