#include "client/messages.h"

#include <string>

#include "absl/strings/str_cat.h"

namespace saccade::client {
namespace {

absl::Duration FromProto(const google::protobuf::Duration& duration) {
  return absl::Seconds(duration.seconds()) + absl::Nanoseconds(duration.nanos());
}

void ToProto(absl::Duration duration, google::protobuf::Duration* proto) {
  absl::Duration rest;
  proto->set_seconds(absl::IDivDuration(duration, absl::Seconds(1), &rest));
  proto->set_nanos(static_cast<int32_t>(absl::ToInt64Nanoseconds(rest)));
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

}  // namespace

v1::PredictRequest ToRequest(absl::string_view model, absl::string_view picture,
                             const ClassifyOptions& options) {
  v1::PredictRequest request;
  request.set_model(std::string(model));
  request.set_version(options.version);
  request.set_request_id(options.request_id);
  request.set_encoded(picture.data(), picture.size());
  request.set_priority(options.priority);
  request.mutable_classification()->set_top_k(options.top_k);
  return request;
}

absl::StatusOr<Classification> FromResponse(const v1::PredictResponse& response) {
  if (!response.has_classification()) {
    return absl::InternalError(absl::StrCat("model '", response.model(),
                                            "' did not answer with classes; is its task another one? "
                                            "(saccade models tells)"));
  }
  Classification result;
  result.model = response.model();
  result.version = response.version();
  result.request_id = response.request_id();
  for (const v1::Classification::Class& item : response.classification().classes()) {
    result.classes.push_back({item.index(), item.label(), item.probability(), item.logit()});
  }
  result.timings = ReadTimings(response);
  result.batch_size = response.batch_size();
  result.picture_width = response.picture_width();
  result.picture_height = response.picture_height();
  return result;
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
  result.classes = model.classes();
  result.labels = {model.labels().begin(), model.labels().end()};
  result.max_batch_size = model.max_batch_size();
  result.queued = model.queued();
  result.load_duration = FromProto(model.load_duration());
  return result;
}

v1::PredictResponse ToResponse(const Classification& classification) {
  v1::PredictResponse response;
  response.set_model(classification.model);
  response.set_version(classification.version);
  response.set_request_id(classification.request_id);
  for (const ScoredClass& item : classification.classes) {
    v1::Classification::Class* added = response.mutable_classification()->add_classes();
    added->set_index(item.index);
    added->set_label(item.label);
    added->set_probability(item.probability);
    added->set_logit(item.logit);
  }
  ToProto(classification.timings.decode, response.mutable_timings()->mutable_decode());
  ToProto(classification.timings.queue, response.mutable_timings()->mutable_queue());
  ToProto(classification.timings.infer, response.mutable_timings()->mutable_infer());
  ToProto(classification.timings.total, response.mutable_timings()->mutable_total());
  response.set_batch_size(classification.batch_size);
  response.set_picture_width(classification.picture_width);
  response.set_picture_height(classification.picture_height);
  return response;
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
  result.set_classes(model.classes);
  for (const std::string& label : model.labels) result.add_labels(label);
  result.set_max_batch_size(model.max_batch_size);
  result.set_queued(model.queued);
  ToProto(model.load_duration, result.mutable_load_duration());
  return result;
}

}  // namespace saccade::client
