#include "client/cpp/testing/daemon_messages.h"

#include <variant>

#include "absl/strings/str_cat.h"
#include "client/cpp/status.h"

namespace saccade::client {
namespace {

void ToProto(absl::Duration duration, google::protobuf::Duration* proto) {
  absl::Duration rest;
  proto->set_seconds(absl::IDivDuration(duration, absl::Seconds(1), &rest));
  proto->set_nanos(static_cast<int32_t>(absl::ToInt64Nanoseconds(rest)));
}

void ToProto(const Spent& spent, inference::StatisticDuration* proto) {
  proto->set_count(static_cast<uint64_t>(spent.count));
  proto->set_ns(static_cast<uint64_t>(absl::ToInt64Nanoseconds(spent.time)));
}

v1::Model::State ToProto(ModelState state) {
  switch (state) {
    case ModelState::kLoading:
      return v1::Model::LOADING;
    case ModelState::kReady:
      return v1::Model::READY;
    case ModelState::kUnavailable:
      return v1::Model::UNAVAILABLE;
    case ModelState::kUnknown:
      break;
  }
  return v1::Model::STATE_UNSPECIFIED;
}

DetectOptions FromProto(const v1::DetectionOptions& proto) {
  DetectOptions options;
  if (proto.has_score_threshold()) options.score_threshold = proto.score_threshold();
  options.top_k = proto.top_k();
  options.classes = {proto.classes().begin(), proto.classes().end()};
  options.masks = proto.masks() != v1::DetectionOptions::NONE;
  options.mask_form = proto.masks() == v1::DetectionOptions::PNG        ? MaskForm::kPng
                      : proto.masks() == v1::DetectionOptions::POLYGONS ? MaskForm::kPolygons
                                                                        : MaskForm::kRle;
  if (proto.has_mask_threshold()) options.mask_threshold = proto.mask_threshold();
  return options;
}

OutputSize FromProto(const v1::OutputSize& proto) {
  return {.width = proto.width(), .height = proto.height(), .network = proto.network()};
}

SegmentOptions FromProto(const v1::SegmentationOptions& proto) {
  SegmentOptions options;
  if (proto.has_size()) options.size = FromProto(proto.size());
  if (proto.format() == v1::SegmentationOptions::RAW) options.format = LabelMapFormat::kRaw;
  if (proto.format() == v1::SegmentationOptions::NONE) options.format = LabelMapFormat::kNone;
  return options;
}

ActionOptions FromProto(const v1::ActionOptions& proto) {
  ActionOptions options;
  if (proto.has_score_threshold()) options.score_threshold = proto.score_threshold();
  options.top_k = proto.top_k();
  options.classes = {proto.classes().begin(), proto.classes().end()};
  return options;
}

VoxelType FromProto(v1::VolumeShape::Type type) {
  return type == v1::VolumeShape::UINT8    ? VoxelType::kUint8
         : type == v1::VolumeShape::UINT16 ? VoxelType::kUint16
                                           : VoxelType::kFloat32;
}

void Write(const Classification& answer, v1::PredictResponse& response) {
  response.mutable_classification();
  for (const ScoredClass& item : answer.classes) {
    v1::Classification::Class* added = response.mutable_classification()->add_classes();
    added->set_index(item.index);
    added->set_label(item.label);
    added->set_probability(item.probability);
    added->set_logit(item.logit);
  }
}

void Write(const Detections& answer, v1::PredictResponse& response) {
  response.mutable_detections();
  for (const Detection& item : answer.items) {
    v1::Detection* added = response.mutable_detections()->add_detections();
    added->mutable_box()->set_x_min(item.box.x_min);
    added->mutable_box()->set_y_min(item.box.y_min);
    added->mutable_box()->set_x_max(item.box.x_max);
    added->mutable_box()->set_y_max(item.box.y_max);
    added->set_score(item.score);
    added->set_class_index(item.class_index);
    added->set_label(item.label);
    for (const Keypoint& point : item.keypoints) {
      v1::Keypoint* const out = added->add_keypoints();
      out->set_x(point.x);
      out->set_y(point.y);
      out->set_score(point.score);
    }
    if (item.mask_picture) {
      v1::MaskPicture* const picture = added->mutable_mask_picture();
      picture->set_x(item.mask_picture->x);
      picture->set_y(item.mask_picture->y);
      picture->set_width(item.mask_picture->width);
      picture->set_height(item.mask_picture->height);
      picture->set_png(item.mask_picture->png);
      picture->set_area(item.mask_picture->area);
    }
    if (item.mask_polygons) {
      added->mutable_mask_polygons()->set_area(item.mask_polygons->area);
      for (const MaskPolygon& polygon : item.mask_polygons->polygons) {
        v1::MaskPolygons::Polygon* const out = added->mutable_mask_polygons()->add_polygons();
        out->mutable_points()->Add(polygon.points.begin(), polygon.points.end());
        out->set_hole(polygon.hole);
      }
    }
    if (!item.mask) continue;
    added->mutable_mask()->set_height(item.mask->height);
    added->mutable_mask()->set_width(item.mask->width);
    added->mutable_mask()->set_counts(item.mask->counts);
    added->mutable_mask()->set_area(item.mask->area);
  }
}

void Write(const Segmentation& answer, v1::PredictResponse& response) {
  v1::Segmentation* proto = response.mutable_segmentation();
  proto->set_width(answer.width);
  proto->set_height(answer.height);
  proto->set_label_map(answer.label_map);
  proto->set_format(answer.format == LabelMapFormat::kPng   ? v1::SegmentationOptions::PNG
                    : answer.format == LabelMapFormat::kRaw ? v1::SegmentationOptions::RAW
                                                            : v1::SegmentationOptions::NONE);
  for (const ClassArea& area : answer.areas) {
    v1::Segmentation::Area* added = proto->add_areas();
    added->set_class_index(area.class_index);
    added->set_label(area.label);
    added->set_pixels(area.pixels);
    added->set_fraction(area.fraction);
  }
}

void Write(const Disparity& answer, v1::PredictResponse& response) {
  v1::Disparity* proto = response.mutable_disparity();
  proto->set_width(answer.width);
  proto->set_height(answer.height);
  proto->set_map(answer.map);
  proto->set_format(answer.format == DisparityFormat::kFloat ? v1::StereoOptions::FLOAT
                                                             : v1::StereoOptions::PNG_16);
  proto->set_min(answer.min);
  proto->set_max(answer.max);
  proto->set_mean(answer.mean);
}

void Write(const Embedding& answer, v1::PredictResponse& response) {
  response.mutable_embedding()->mutable_values()->Add(answer.values.begin(), answer.values.end());
}

void Write(const Actions& answer, v1::PredictResponse& response) {
  v1::Actions* proto = response.mutable_actions();
  proto->set_frames(answer.frames);
  proto->set_frames_per_second(answer.frames_per_second);
  for (const Action& item : answer.items) {
    v1::Actions::Action* added = proto->add_actions();
    added->set_start_seconds(item.start_seconds);
    added->set_end_seconds(item.end_seconds);
    added->set_score(item.score);
    added->set_class_index(item.class_index);
    added->set_label(item.label);
    added->set_start_frame(item.start_frame);
    added->set_end_frame(item.end_frame);
  }
}

void Write(const Restoration& answer, v1::PredictResponse& response) {
  v1::Restoration* proto = response.mutable_restoration();
  proto->mutable_shape()->set_depth(answer.shape.depth);
  proto->mutable_shape()->set_height(answer.shape.height);
  proto->mutable_shape()->set_width(answer.shape.width);
  proto->mutable_shape()->set_type(answer.shape.type == VoxelType::kUint8    ? v1::VolumeShape::UINT8
                                   : answer.shape.type == VoxelType::kUint16 ? v1::VolumeShape::UINT16
                                                                             : v1::VolumeShape::FLOAT32);
  proto->set_voxels(answer.voxels);
  proto->set_min(answer.min);
  proto->set_max(answer.max);
}

}  // namespace

FakeRequest FromRequest(const v1::PredictRequest& request) {
  FakeRequest result;
  result.model = request.model();
  result.picture = request.has_stereo() ? request.stereo().left().encoded()
                   : request.has_clip() ? request.clip().video()
                                        : request.encoded();
  result.right = request.stereo().right().encoded();
  result.request = {request.version(), request.priority(), request.request_id()};
  if (request.has_region()) {
    const v1::Region& region = request.region();
    result.request.region = Region{region.x(), region.y(), region.width(), region.height()};
  }
  if (request.has_tiles()) {
    const v1::Tiles& tiles = request.tiles();
    result.request.tiles = Tiles{tiles.size(), tiles.overlap(), tiles.whole()};
  }
  if (request.has_explain()) {
    result.request.explain = Explain{request.explain().layer(), request.explain().max_maps(), {}};
    for (const v1::Position& position : request.explain().positions())
      result.request.explain->positions.push_back({position.x(), position.y()});
  }
  for (const v1::Picture& frame : request.clip().frames().pictures()) {
    result.frames.push_back(frame.encoded());
  }
  result.frames_per_second = request.clip().frames().frames_per_second();
  result.classify.top_k = request.classification().top_k();
  if (request.classification().has_probability_threshold())
    result.classify.probability_threshold = request.classification().probability_threshold();
  result.detect = FromProto(request.detection());
  result.segment = FromProto(request.segmentation());
  if (request.stereo_options().format() == v1::StereoOptions::FLOAT) {
    result.stereo.format = DisparityFormat::kFloat;
  }
  if (request.stereo_options().has_size()) result.stereo.size = FromProto(request.stereo_options().size());
  result.actions = FromProto(request.actions());
  return result;
}

FakeRequest FromHeader(const v1::RestoreHeader& header) {
  FakeRequest result;
  result.model = header.model();
  result.request = {header.version(), header.priority(), header.request_id()};
  result.announced_bytes = header.bytes();
  if (header.has_raw()) {
    result.raw = VolumeShape{header.raw().depth(), header.raw().height(), header.raw().width(),
                             FromProto(header.raw().type())};
  }
  if (header.restoration().type() != v1::VolumeShape::TYPE_UNSPECIFIED) {
    result.restore.type = FromProto(header.restoration().type());
  }
  return result;
}

v1::PredictResponse ToResponse(const AnyAnswer& answer) {
  v1::PredictResponse response;
  const Answer& common = std::visit([](const auto& task) -> const Answer& { return task; }, answer);
  response.set_model(common.model);
  response.set_version(common.version);
  response.set_request_id(common.request_id);
  ToProto(common.timings.decode, response.mutable_timings()->mutable_decode());
  ToProto(common.timings.queue, response.mutable_timings()->mutable_queue());
  ToProto(common.timings.infer, response.mutable_timings()->mutable_infer());
  ToProto(common.timings.encode, response.mutable_timings()->mutable_encode());
  ToProto(common.timings.total, response.mutable_timings()->mutable_total());
  response.set_batch_size(common.batch_size);
  response.set_picture_width(common.picture_width);
  response.set_picture_height(common.picture_height);
  if (common.explanation) {
    response.mutable_explanation()->set_layer(common.explanation->layer);
    response.mutable_explanation()->set_available(common.explanation->available);
    for (const AttentionMap& map : common.explanation->maps) {
      v1::AttentionMap& added = *response.mutable_explanation()->add_maps();
      added.set_name(map.name);
      added.set_width(map.width);
      added.set_height(map.height);
      added.set_png(map.png);
      added.set_min(map.min);
      added.set_max(map.max);
    }
  }
  std::visit([&response](const auto& task) { Write(task, response); }, answer);
  return response;
}

v1::ItemError ToItemError(const absl::Status& status) {
  v1::ItemError error;
  error.set_code(static_cast<int32_t>(status.code()));
  error.set_message(std::string(status.message()));
  if (const auto retry = RetryAfter(status)) ToProto(*retry, error.mutable_retry_after());
  return error;
}

v1::Timing ToProto(const ModelTiming& timing) {
  v1::Timing result;
  for (const BucketTiming& bucket : timing.buckets) {
    v1::Timing::Bucket* const made = result.add_buckets();
    made->set_id(bucket.id);
    made->set_name(bucket.name);
    made->set_items(bucket.items);
    for (const absl::Duration pass : bucket.passes) made->add_seconds(absl::ToDoubleSeconds(pass));
    made->set_smallest(bucket.smallest);
    made->set_largest(bucket.largest);
    made->set_deviation(bucket.deviation);
  }
  result.set_instances(timing.instances);
  result.set_threads(timing.threads);
  result.set_cores(timing.cores);
  result.set_max_queue_size(timing.max_queue_size);
  result.set_model_bytes(timing.model_bytes);
  result.set_resident_bytes(timing.resident_bytes);
  return result;
}

v1::Promotion ToProto(const Promotion& promotion) {
  v1::Promotion result;
  // Both have the same order.
  result.set_state(static_cast<v1::Promotion::State>(promotion.state));
  result.set_rule(promotion.rule);
  result.set_shadow(promotion.shadow);
  result.set_replaces(promotion.replaces);
  result.set_reason(promotion.reason);
  return result;
}

v1::Model ToProto(const Model& model) {
  v1::Model result;
  result.set_name(model.name);
  result.set_version(model.version);
  result.set_state(ToProto(model.state));
  result.set_reason(model.reason);
  result.set_architecture(model.architecture);
  result.set_task(model.task);
  result.mutable_options()->insert(model.options.begin(), model.options.end());
  result.set_input_width(model.input_width);
  result.set_input_height(model.input_height);
  result.set_buckets(model.buckets);
  result.set_views(model.views);
  result.set_max_frames(model.max_frames);
  result.set_frames_per_second(model.frames_per_second);
  result.set_max_voxels(model.max_voxels);
  result.set_classes(model.classes);
  for (const std::string& label : model.labels) result.add_labels(label);
  result.set_precision(model.precision);
  result.set_precision_reason(model.precision_reason);
  result.set_max_batch_size(model.max_batch_size);
  result.set_queued(model.queued);
  ToProto(model.load_duration, result.mutable_load_duration());
  if (model.timing) *result.mutable_timing() = ToProto(*model.timing);
  if (model.promotion) *result.mutable_promotion() = ToProto(*model.promotion);
  return result;
}

inference::ModelStatistics ToProto(const ModelStatistics& model) {
  inference::ModelStatistics result;
  result.set_name(model.model);
  result.set_version(absl::StrCat(model.version));
  result.set_inference_count(static_cast<uint64_t>(model.pictures));
  result.set_execution_count(static_cast<uint64_t>(model.passes));
  inference::InferStatistics& requests = *result.mutable_inference_stats();
  ToProto(model.answered, requests.mutable_success());
  ToProto(model.failed, requests.mutable_fail());
  ToProto(model.decode, requests.mutable_compute_input());
  ToProto(model.queue, requests.mutable_queue());
  ToProto(model.infer, requests.mutable_compute_infer());
  ToProto(model.encode, requests.mutable_compute_output());
  for (const auto& [size, spent] : model.passes_by_batch_size) {
    inference::InferBatchStatistics& batch = *result.add_batch_stats();
    batch.set_batch_size(static_cast<uint64_t>(size));
    ToProto(spent, batch.mutable_compute_infer());
  }
  return result;
}

}  // namespace saccade::client
