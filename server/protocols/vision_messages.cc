#include "server/protocols/vision_messages.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "server/protocols/vision_options.h"
#include "server/protocols/vision_results.h"

namespace saccade::server {
namespace {

constexpr int kMaxPriority = 100;
constexpr size_t kMaxRequestId = 128;

absl::Status Invalid(absl::string_view field, absl::string_view problem) {
  return absl::InvalidArgumentError(absl::StrCat(field, ": ", problem));
}

absl::Status CheckFields(const v1::PredictRequest& message) {
  if (message.model().empty()) return Invalid("model", "is empty; name one of those that ListModels returns");
  if (message.version() < 0) {
    return Invalid("version",
                   absl::StrCat("is ", message.version(), "; expected a version, or 0 for the latest"));
  }
  if (message.request_id().size() > kMaxRequestId) {
    return Invalid("request_id",
                   absl::StrCat("has ", message.request_id().size(), " bytes; at most ", kMaxRequestId));
  }
  if (message.priority() < -kMaxPriority || message.priority() > kMaxPriority) {
    return Invalid("priority", absl::StrCat("is ", message.priority(), "; expected -100 to 100"));
  }
  return CheckOptions(message);
}

Picture FromEncoded(const std::string& encoded) {
  return EncodedPicture{.data = {.owner = nullptr, .bytes = encoded}};
}

// `field` is what the client calls it.
absl::StatusOr<Picture> FromRaw(absl::string_view field, const v1::RawPicture& raw) {
  if (raw.width() < 1 || raw.height() < 1) {
    return Invalid(field,
                   absl::StrCat("is ", raw.width(), " x ", raw.height(), " pixels; both must be at least 1"));
  }
  if (raw.order() != v1::RawPicture::RGB && raw.order() != v1::RawPicture::BGR) {
    return Invalid(absl::StrCat(field, ".order"), "is neither RGB nor BGR; say which");
  }
  const int64_t expected = int64_t{raw.width()} * raw.height() * 3;
  if (static_cast<int64_t>(raw.pixels().size()) != expected) {
    return Invalid(absl::StrCat(field, ".pixels"),
                   absl::StrCat("holds ", raw.pixels().size(), " bytes; ", raw.width(), " x ", raw.height(),
                                " x 3 channels are ", expected));
  }
  return RawPicture{.width = raw.width(),
                    .height = raw.height(),
                    .rgb = raw.order() == v1::RawPicture::RGB,
                    .data = {.owner = nullptr, .bytes = raw.pixels()}};
}

absl::StatusOr<Picture> FromPicture(absl::string_view field, const v1::Picture& picture) {
  switch (picture.content_case()) {
    case v1::Picture::kEncoded:
      return FromEncoded(picture.encoded());
    case v1::Picture::kRaw:
      return FromRaw(absl::StrCat(field, ".raw"), picture.raw());
    case v1::Picture::CONTENT_NOT_SET:
      break;
  }
  return Invalid(field, "is missing; a stereo pair is two pictures, each 'encoded' or 'raw'");
}

// Sets the input, and what it is called.
absl::Status ReadInput(const v1::PredictRequest& message, Request& request) {
  std::vector<absl::StatusOr<Picture>> read;
  switch (message.input_case()) {
    case v1::PredictRequest::kEncoded:
      request.input_name = "encoded";
      read = {FromEncoded(message.encoded())};
      break;
    case v1::PredictRequest::kRaw:
      request.input_name = "raw";
      read = {FromRaw("raw", message.raw())};
      break;
    case v1::PredictRequest::kStereo:
      request.input_name = "stereo";
      request.views = 2;
      read = {FromPicture("stereo.left", message.stereo().left()),
              FromPicture("stereo.right", message.stereo().right())};
      break;
    case v1::PredictRequest::INPUT_NOT_SET:
      return Invalid("input",
                     "is missing; set 'encoded' to a whole JPEG, PNG, WebP or BMP file, 'raw' to pixels, or "
                     "'stereo' to two pictures");
  }
  std::vector<Picture> pictures;
  for (auto& picture : read) {
    if (!picture.ok()) return picture.status();
    pictures.push_back(*std::move(picture));
  }
  request.input = std::move(pictures);
  return absl::OkStatus();
}

void SetDuration(absl::Duration duration, google::protobuf::Duration* message) {
  message->set_seconds(absl::IDivDuration(duration, absl::Seconds(1), &duration));
  message->set_nanos(static_cast<int32_t>(absl::ToInt64Nanoseconds(duration)));
}

}  // namespace

absl::StatusOr<Request> FromMessage(const v1::PredictRequest& message) {
  if (absl::Status status = CheckFields(message); !status.ok()) return status;
  Request request;
  request.model = message.model();
  request.version = message.version();
  request.id = message.request_id();
  request.priority = message.priority();
  request.protocol = "grpc";
  request.accepts = [&message](const models::Description& model) { return CheckOptionsFit(message, model); };
  if (absl::Status input = ReadInput(message, request); !input.ok()) return input;
  return request;
}

absl::Status ToMessage(const Response& response, const v1::PredictRequest& request,
                       v1::PredictResponse* message) {
  message->set_model(response.model);
  message->set_version(response.version);
  message->set_request_id(request.request_id());
  message->set_batch_size(static_cast<int32_t>(response.batch_size));
  message->set_picture_width(response.pictures.at(0).width);
  message->set_picture_height(response.pictures.at(0).height);
  v1::Timings* timings = message->mutable_timings();
  SetDuration(response.timings.decode, timings->mutable_decode());
  SetDuration(response.timings.queue, timings->mutable_queue());
  SetDuration(response.timings.infer, timings->mutable_infer());
  SetDuration(response.timings.total, timings->mutable_total());
  return SetResult(response.results.at(0), *response.description, request, message);
}

void ToMessage(const ModelSnapshot& snapshot, v1::Model* message) {
  message->set_name(snapshot.name);
  message->set_version(snapshot.version);
  switch (snapshot.state) {
    case ModelSnapshot::State::kLoading:
      message->set_state(v1::Model::LOADING);
      break;
    case ModelSnapshot::State::kReady:
      message->set_state(v1::Model::READY);
      break;
    case ModelSnapshot::State::kUnavailable:
      message->set_state(v1::Model::UNAVAILABLE);
      break;
  }
  message->set_reason(snapshot.reason);
  const models::Description& description = snapshot.description;
  message->set_architecture(description.architecture);
  message->set_max_batch_size(snapshot.max_batch_size);
  message->set_queued(snapshot.queued);
  SetDuration(snapshot.load_duration, message->mutable_load_duration());
  if (snapshot.state != ModelSnapshot::State::kReady) return;
  message->set_task(models::TaskName(description.task));
  message->mutable_options()->insert(description.options.begin(), description.options.end());
  message->set_input_width(static_cast<int32_t>(description.input.width));
  message->set_input_height(static_cast<int32_t>(description.input.height));
  message->set_classes(description.classes);
  message->set_views(static_cast<int32_t>(description.input.views));
  if (description.input.fit == models::Fit::kKeepRatio) {
    message->set_buckets(models::AsText(description.input.buckets));
  }
  for (const std::string& label : description.labels) message->add_labels(label);
}

}  // namespace saccade::server
