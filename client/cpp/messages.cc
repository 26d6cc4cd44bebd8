#include "client/cpp/messages.h"

#include <string>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "client/cpp/status.h"

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

// Sets the common fields of a PredictRequest or a RestoreHeader.
template <typename Request>
Request StartRequest(absl::string_view model, const RequestOptions& options) {
  Request request;
  request.set_model(std::string(model));
  request.set_version(options.version);
  request.set_request_id(options.request_id);
  request.set_priority(options.priority);
  return request;
}

v1::PredictRequest StartPredict(absl::string_view model, const RequestOptions& options) {
  auto request = StartRequest<v1::PredictRequest>(model, options);
  if (options.region) {
    v1::Region& region = *request.mutable_region();
    region.set_x(options.region->x);
    region.set_y(options.region->y);
    region.set_width(options.region->width);
    region.set_height(options.region->height);
  }
  if (options.tiles) {
    v1::Tiles& tiles = *request.mutable_tiles();
    tiles.set_size(options.tiles->size);
    tiles.set_overlap(options.tiles->overlap);
    tiles.set_whole(options.tiles->whole);
  }
  if (options.explain) {
    request.mutable_explain()->set_layer(options.explain->layer);
    request.mutable_explain()->set_max_maps(options.explain->max_maps);
    for (const Position& position : options.explain->positions) {
      v1::Position* const added = request.mutable_explain()->add_positions();
      added->set_x(position.x);
      added->set_y(position.y);
    }
  }
  return request;
}

VoxelType FromProto(v1::VolumeShape::Type type) {
  return type == v1::VolumeShape::FLOAT32  ? VoxelType::kFloat32
         : type == v1::VolumeShape::UINT16 ? VoxelType::kUint16
                                           : VoxelType::kUint8;
}

v1::VolumeShape::Type ToProto(VoxelType type) {
  return type == VoxelType::kFloat32  ? v1::VolumeShape::FLOAT32
         : type == VoxelType::kUint16 ? v1::VolumeShape::UINT16
                                      : v1::VolumeShape::UINT8;
}

// The result's name in error messages.
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
    case Result::kActions:
      return "actions";
    case Result::kRestoration:
      return "a restoration";
    case Result::kEmbedding:
      return "an embedding";
    case Result::RESULT_NOT_SET:
      break;
  }
  return "a result that this client does not know";
}

std::vector<ScoredClass> ClassesOf(const v1::Classification& proto) {
  std::vector<ScoredClass> classes;
  for (const v1::Classification::Class& item : proto.classes())
    classes.push_back({item.index(), item.label(), item.probability(), item.logit()});
  return classes;
}

void Read(const v1::Classification& proto, Classification& result) { result.classes = ClassesOf(proto); }

void ReadMask(const v1::Detection& item, Detection& added) {
  if (item.has_mask()) {
    const v1::RleMask& mask = item.mask();
    added.mask = RleMask{mask.height(), mask.width(), mask.counts(), mask.area()};
  } else if (item.has_mask_picture()) {
    const v1::MaskPicture& mask = item.mask_picture();
    added.mask_picture =
        MaskPicture{mask.x(), mask.y(), mask.width(), mask.height(), mask.png(), mask.area()};
  } else if (item.has_mask_polygons()) {
    MaskPolygons& mask = added.mask_polygons.emplace();
    mask.area = item.mask_polygons().area();
    for (const v1::MaskPolygons::Polygon& one : item.mask_polygons().polygons())
      mask.polygons.push_back({{one.points().begin(), one.points().end()}, one.hole()});
  }
}

void Write(const OutputSize& size, v1::OutputSize& proto) {
  proto.set_width(size.width);
  proto.set_height(size.height);
  proto.set_network(size.network);
}

v1::StereoOptions::Format ToProto(DisparityFormat format) {
  return format == DisparityFormat::kFloat ? v1::StereoOptions::FLOAT : v1::StereoOptions::PNG_16;
}

v1::DetectionOptions::Masks ToProto(MaskForm form) {
  return form == MaskForm::kPng        ? v1::DetectionOptions::PNG
         : form == MaskForm::kPolygons ? v1::DetectionOptions::POLYGONS
                                       : v1::DetectionOptions::RLE;
}

std::vector<Detection> DetectionsOf(const v1::Detections& proto);

// NOLINTNEXTLINE(misc-no-recursion): see DetectionsOf()
Crop CropOf(const v1::Crop& proto) {
  Crop crop{.model = proto.model(), .version = proto.version(), .region = {}};
  crop.region = {proto.region().x(), proto.region().y(), proto.region().width(), proto.region().height()};
  crop.classes = ClassesOf(proto.classification());
  crop.detections = DetectionsOf(proto.detections());
  crop.embedding.assign(proto.embedding().values().begin(), proto.embedding().values().end());
  crop.error = proto.error();
  return crop;
}

// Detections may have crops, and these detections again: as deep as messages are parsed.
// NOLINTNEXTLINE(misc-no-recursion)
std::vector<Detection> DetectionsOf(const v1::Detections& proto) {
  std::vector<Detection> detections;
  for (const v1::Detection& item : proto.detections()) {
    Detection& added = detections.emplace_back();
    added.box = {item.box().x_min(), item.box().y_min(), item.box().x_max(), item.box().y_max()};
    added.score = item.score();
    added.class_index = item.class_index();
    added.label = item.label();
    ReadMask(item, added);
    for (const v1::Crop& crop : item.crops()) added.crops.push_back(CropOf(crop));
    for (const v1::Keypoint& point : item.keypoints())
      added.keypoints.push_back({point.x(), point.y(), point.score()});
  }
  return detections;
}

void Read(const v1::Detections& proto, Detections& result) { result.items = DetectionsOf(proto); }

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
  result.min = proto.min();
  result.max = proto.max();
  result.mean = proto.mean();
}

void Read(const v1::Embedding& proto, Embedding& result) {
  result.values.assign(proto.values().begin(), proto.values().end());
}

void Read(const v1::Actions& proto, Actions& result) {
  for (const v1::Actions::Action& item : proto.actions()) {
    result.items.push_back({item.start_seconds(), item.end_seconds(), item.score(), item.class_index(),
                            item.label(), item.start_frame(), item.end_frame()});
  }
  result.frames = proto.frames();
  result.frames_per_second = proto.frames_per_second();
}

void Read(const v1::Restoration& proto, Restoration& result) {
  result.shape = {proto.shape().depth(), proto.shape().height(), proto.shape().width(),
                  FromProto(proto.shape().type())};
  result.voxels = proto.voxels();
  result.min = proto.min();
  result.max = proto.max();
}

v1::PredictRequest StartActions(absl::string_view model, const ActionOptions& options) {
  v1::PredictRequest request = StartPredict(model, options.request);
  v1::ActionOptions* actions = request.mutable_actions();
  if (options.score_threshold) actions->set_score_threshold(*options.score_threshold);
  actions->set_top_k(options.top_k);
  for (const int64_t index : options.classes) actions->add_classes(index);
  return request;
}

Explanation Read(const v1::Explanation& proto) {
  Explanation result{
      .layer = proto.layer(), .maps = {}, .available = proto.available(), .seen = std::nullopt};
  for (const v1::AttentionMap& map : proto.maps())
    result.maps.push_back({map.name(), map.width(), map.height(), map.png(), map.min(), map.max()});
  if (proto.has_seen()) {
    const v1::PicturePart& seen = proto.seen();
    result.seen = PicturePart{seen.x(), seen.y(), seen.width(), seen.height()};
  }
  return result;
}

template <typename TaskAnswer, typename Proto>
absl::StatusOr<TaskAnswer> ReadAs(Result wanted, const v1::PredictResponse& response,
                                  const Proto& (v1::PredictResponse::*part)() const) {
  if (response.result_case() != wanted) {
    const char* const expected = std::is_same_v<TaskAnswer, DepthMap> ? "a depth map" : NameOf(wanted);
    return absl::InternalError(absl::StrCat("model '", response.model(), "' answered with ",
                                            NameOf(response.result_case()), " instead of ", expected,
                                            "; check the model's task with `saccade models`"));
  }
  TaskAnswer result;
  result.model = response.model();
  result.version = response.version();
  result.request_id = response.request_id();
  result.timings = ReadTimings(response);
  result.batch_size = response.batch_size();
  result.picture_width = response.picture_width();
  result.picture_height = response.picture_height();
  if (response.has_explanation()) result.explanation = Read(response.explanation());
  if (response.has_attestation()) result.attested = response.SerializeAsString();
  Read((response.*part)(), result);
  return result;
}

}  // namespace

v1::PredictRequest ToRequest(absl::string_view model, absl::string_view picture,
                             const ClassifyOptions& options) {
  v1::PredictRequest request = StartPredict(model, options.request);
  request.set_encoded(picture.data(), picture.size());
  request.mutable_classification()->set_top_k(options.top_k);
  if (options.probability_threshold)
    request.mutable_classification()->set_probability_threshold(*options.probability_threshold);
  return request;
}

v1::PredictRequest ToRequest(absl::string_view model, absl::string_view picture,
                             const DetectOptions& options) {
  v1::PredictRequest request = StartPredict(model, options.request);
  request.set_encoded(picture.data(), picture.size());
  v1::DetectionOptions* detection = request.mutable_detection();
  if (options.score_threshold) detection->set_score_threshold(*options.score_threshold);
  detection->set_top_k(options.top_k);
  for (const int64_t index : options.classes) detection->add_classes(index);
  detection->set_masks(options.masks ? ToProto(options.mask_form) : v1::DetectionOptions::NONE);
  if (options.mask_threshold) detection->set_mask_threshold(*options.mask_threshold);
  return request;
}

v1::PredictRequest ToRequest(absl::string_view model, absl::string_view picture,
                             const SegmentOptions& options) {
  v1::PredictRequest request = StartPredict(model, options.request);
  request.set_encoded(picture.data(), picture.size());
  request.mutable_segmentation()->set_format(
      options.format == LabelMapFormat::kPng   ? v1::SegmentationOptions::PNG
      : options.format == LabelMapFormat::kRaw ? v1::SegmentationOptions::RAW
                                               : v1::SegmentationOptions::NONE);
  if (options.size) Write(*options.size, *request.mutable_segmentation()->mutable_size());
  return request;
}

v1::PredictRequest ToRequest(absl::string_view model, absl::string_view left, absl::string_view right,
                             const StereoOptions& options) {
  v1::PredictRequest request = StartPredict(model, options.request);
  request.mutable_stereo()->mutable_left()->set_encoded(left.data(), left.size());
  request.mutable_stereo()->mutable_right()->set_encoded(right.data(), right.size());
  request.mutable_stereo_options()->set_format(ToProto(options.format));
  if (options.size) Write(*options.size, *request.mutable_stereo_options()->mutable_size());
  return request;
}

v1::PredictRequest ToRequest(absl::string_view model, absl::string_view picture,
                             const DepthOptions& options) {
  v1::PredictRequest request = StartPredict(model, options.request);
  request.set_encoded(picture.data(), picture.size());
  request.mutable_stereo_options()->set_format(ToProto(options.format));
  if (options.size) Write(*options.size, *request.mutable_stereo_options()->mutable_size());
  return request;
}

v1::PredictRequest ToRequest(absl::string_view model, absl::string_view picture,
                             const EmbedOptions& options) {
  v1::PredictRequest request = StartPredict(model, options.request);
  request.set_encoded(picture.data(), picture.size());
  return request;
}

v1::PredictRequest ToRequest(absl::string_view model, absl::string_view video, const ActionOptions& options) {
  v1::PredictRequest request = StartActions(model, options);
  request.mutable_clip()->set_video(video.data(), video.size());
  return request;
}

v1::PredictRequest ToRequest(absl::string_view model, const std::vector<std::string>& frames,
                             double frames_per_second, const ActionOptions& options) {
  v1::PredictRequest request = StartActions(model, options);
  v1::Frames* proto = request.mutable_clip()->mutable_frames();
  for (const std::string& frame : frames) proto->add_pictures()->set_encoded(frame);
  proto->set_frames_per_second(frames_per_second);
  return request;
}

v1::RestoreHeader ToHeader(absl::string_view model, const VolumeSource& volume,
                           const RestoreOptions& options) {
  auto header = StartRequest<v1::RestoreHeader>(model, options.request);
  header.set_bytes(volume.bytes);
  if (volume.raw) {
    header.mutable_raw()->set_depth(volume.raw->depth);
    header.mutable_raw()->set_height(volume.raw->height);
    header.mutable_raw()->set_width(volume.raw->width);
    header.mutable_raw()->set_type(ToProto(volume.raw->type));
  }
  if (options.type) header.mutable_restoration()->set_type(ToProto(*options.type));
  return header;
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

template <>
absl::StatusOr<DepthMap> FromResponse<DepthMap>(const v1::PredictResponse& response) {
  return ReadAs<DepthMap>(Result::kDisparity, response, &v1::PredictResponse::disparity);
}

template <>
absl::StatusOr<Embedding> FromResponse<Embedding>(const v1::PredictResponse& response) {
  return ReadAs<Embedding>(Result::kEmbedding, response, &v1::PredictResponse::embedding);
}

template <>
absl::StatusOr<Actions> FromResponse<Actions>(const v1::PredictResponse& response) {
  return ReadAs<Actions>(Result::kActions, response, &v1::PredictResponse::actions);
}

template <>
absl::StatusOr<Restoration> FromResponse<Restoration>(const v1::PredictResponse& response) {
  return ReadAs<Restoration>(Result::kRestoration, response, &v1::PredictResponse::restoration);
}

absl::StatusOr<AnyAnswer> FromAnyResponse(const v1::PredictResponse& response, bool is_depth) {
  switch (response.result_case()) {
    case Result::kClassification:
      return FromResponse<Classification>(response);
    case Result::kDetections:
      return FromResponse<Detections>(response);
    case Result::kSegmentation:
      return FromResponse<Segmentation>(response);
    case Result::kDisparity:
      if (is_depth) return FromResponse<DepthMap>(response);
      return FromResponse<Disparity>(response);
    case Result::kActions:
      return FromResponse<Actions>(response);
    case Result::kRestoration:
      return FromResponse<Restoration>(response);
    case Result::kEmbedding:
      return FromResponse<Embedding>(response);
    case Result::RESULT_NOT_SET:
      break;
  }
  return absl::InternalError(
      absl::StrCat("model '", response.model(), "' answered with ", NameOf(response.result_case())));
}

absl::Status FromProto(const v1::ItemError& error) {
  if (error.code() == 0)
    return absl::InternalError("the daemon sent a stream item with neither a response nor an error");
  // absl and gRPC use the same numbers for the canonical codes.
  absl::Status status(static_cast<absl::StatusCode>(error.code()), error.message());
  if (error.has_retry_after()) {
    const std::string wait = absl::StrCat(absl::ToInt64Milliseconds(FromProto(error.retry_after())));
    SetRetryAfter(status, wait);
  }
  return status;
}

absl::Status CheckSize(const google::protobuf::MessageLite& request, int64_t max_message_bytes) {
  const auto size = static_cast<int64_t>(request.ByteSizeLong());
  if (size <= max_message_bytes) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat("the request is ", size,
                                                   " bytes, more than max_message_bytes (", max_message_bytes,
                                                   "); send less, or raise it on both sides"));
}

Timings ReadTimings(const v1::PredictResponse& response) {
  Timings result;
  result.decode = FromProto(response.timings().decode());
  result.queue = FromProto(response.timings().queue());
  result.infer = FromProto(response.timings().infer());
  result.encode = FromProto(response.timings().encode());
  result.total = FromProto(response.timings().total());
  return result;
}

ModelTiming FromProto(const v1::Timing& timing) {
  ModelTiming result;
  for (const v1::Timing::Bucket& bucket : timing.buckets()) {
    BucketTiming& made = result.buckets.emplace_back();
    made.id = bucket.id();
    made.name = bucket.name();
    made.items = bucket.items();
    for (const double seconds : bucket.seconds()) made.passes.push_back(absl::Seconds(seconds));
    made.smallest = bucket.smallest();
    made.largest = bucket.largest();
    made.deviation = bucket.deviation();
  }
  result.instances = timing.instances();
  result.threads = timing.threads();
  result.cores = timing.cores();
  result.max_queue_size = timing.max_queue_size();
  result.model_bytes = timing.model_bytes();
  result.resident_bytes = timing.resident_bytes();
  return result;
}

Promotion::State FromProto(v1::Promotion::State state) {
  switch (state) {
    case v1::Promotion::MEASURING:
      return Promotion::State::kMeasuring;
    case v1::Promotion::PROMOTED:
      return Promotion::State::kPromoted;
    case v1::Promotion::REFUSED:
      return Promotion::State::kRefused;
    default:
      return Promotion::State::kUnknown;
  }
}

Promotion FromProto(const v1::Promotion& promotion) {
  return {.state = FromProto(promotion.state()),
          .rule = promotion.rule(),
          .shadow = promotion.shadow(),
          .replaces = promotion.replaces(),
          .reason = promotion.reason()};
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
  result.max_frames = model.max_frames();
  result.frames_per_second = model.frames_per_second();
  result.max_voxels = model.max_voxels();
  result.classes = model.classes();
  result.labels = {model.labels().begin(), model.labels().end()};
  result.attention_layers = {model.attention_layers().begin(), model.attention_layers().end()};
  result.attention_by_position = model.attention_by_position();
  result.precision = model.precision();
  result.precision_reason = model.precision_reason();
  result.max_batch_size = model.max_batch_size();
  result.queued = model.queued();
  result.load_duration = FromProto(model.load_duration());
  if (model.has_timing()) result.timing = FromProto(model.timing());
  if (model.has_promotion()) result.promotion = FromProto(model.promotion());
  return result;
}

}  // namespace saccade::client
