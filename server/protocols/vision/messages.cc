#include "server/protocols/vision/messages.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "server/core/call_head.h"
#include "server/grpc/message_size.h"
#include "server/protocols/vision/errors.h"
#include "server/protocols/vision/explain.h"
#include "server/protocols/vision/options.h"
#include "server/protocols/vision/results.h"
#include "server/protocols/vision/volumes.h"

namespace saccade::server {
namespace {

constexpr double kMaxFrameRate = 1000;

absl::Status CheckFields(const RequestFields& fields) {
  if (fields.model.empty())
    return InvalidField("model", "is empty; expected the name of a model, as returned by ListModels");
  if (fields.model.size() > kMaxModelName) {
    return InvalidField("model", absl::StrCat("has ", fields.model.size(), " bytes; at most ", kMaxModelName,
                                              " are accepted"));
  }
  if (fields.version < 0) {
    return InvalidField("version",
                        absl::StrCat("is ", fields.version, "; expected a version, or 0 for the latest"));
  }
  if (fields.request_id.size() > kMaxRequestId) {
    return InvalidField("request_id", absl::StrCat("has ", fields.request_id.size(),
                                                   " bytes; expected at most ", kMaxRequestId));
  }
  if (fields.priority < -kMaxPriority || fields.priority > kMaxPriority)
    return InvalidField("priority", absl::StrCat("is ", fields.priority, "; expected -100 to 100"));
  return absl::OkStatus();
}

Picture FromEncoded(const std::string& encoded) {
  return EncodedPicture{.data = {.owner = nullptr, .bytes = encoded}};
}

// `field` is the client's name for the picture.
absl::StatusOr<Picture> FromRaw(absl::string_view field, const v1::RawPicture& raw) {
  if (raw.width() < 1 || raw.height() < 1) {
    return InvalidField(
        field, absl::StrCat("is ", raw.width(), " x ", raw.height(), " pixels; both must be at least 1"));
  }
  if (raw.order() != v1::RawPicture::RGB && raw.order() != v1::RawPicture::BGR) {
    return InvalidField(absl::StrCat(field, ".order"), "is neither RGB nor BGR; set one of them");
  }
  // Below 3 * 2^62, which does not fit into int64_t.
  const uint64_t expected = static_cast<uint64_t>(raw.width()) * static_cast<uint64_t>(raw.height()) * 3;
  if (raw.pixels().size() != expected) {
    return InvalidField(absl::StrCat(field, ".pixels"),
                        absl::StrCat("holds ", raw.pixels().size(), " bytes; ", raw.width(), " x ",
                                     raw.height(), " x 3 channels take ", expected));
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
  return InvalidField(field, "is missing; set it to a picture, 'encoded' or 'raw'");
}

// The part of the picture that the model is to see.
absl::StatusOr<Region> FromRegion(const v1::PredictRequest& message) {
  const v1::Region& region = message.region();
  if (message.has_clip() || message.has_volume()) {
    return InvalidField(
        "region",
        "is only supported for pictures and stereo pairs; cut clips and volumes before sending them");
  }
  if (region.x() < 0 || region.y() < 0 || region.width() < 1 || region.height() < 1) {
    return InvalidField("region", absl::StrCat("is ", region.width(), " x ", region.height(), " pixels from ",
                                               region.x(), ", ", region.y(),
                                               "; expected sides of at least 1 and a corner of at least 0"));
  }
  return Region{.x = region.x(), .y = region.y(), .width = region.width(), .height = region.height()};
}

// The request's tiles; a size of 0 stands for the whole picture. The rest is checked with the picture.
absl::StatusOr<models::TileRules> FromTiles(const v1::PredictRequest& message) {
  const v1::Tiles& tiles = message.tiles();
  if (message.has_stereo() || message.has_clip() || message.has_volume())
    return InvalidField("tiles", "is set with a stereo pair, a clip or a volume; expected a single picture");
  if (tiles.whole()) {
    if (tiles.size() == 0 && tiles.overlap() == 0) return models::TileRules{};
    return InvalidField("tiles.whole", "is set together with a size or an overlap; set one of them");
  }
  if (tiles.size() < 1) {
    return InvalidField("tiles.size", absl::StrCat("is ", tiles.size(),
                                                   "; expected the side of a tile in pixels, "
                                                   "at least 1"));
  }
  if (tiles.overlap() < 0 || tiles.overlap() > tiles.size() / 2) {
    return InvalidField("tiles.overlap", absl::StrCat("is ", tiles.overlap(), "; expected 0 to ",
                                                      tiles.size() / 2, ", half of the size"));
  }
  if (message.has_explain())
    return InvalidField("explain", "is set together with tiles; attention maps are of the whole picture");
  return models::TileRules{.size = tiles.size(), .overlap = tiles.overlap()};
}

using Pictures = std::vector<Picture>;

absl::StatusOr<Pictures> FromPair(const v1::StereoPair& pair) {
  auto left = FromPicture("stereo.left", pair.left());
  if (!left.ok()) return left.status();
  auto right = FromPicture("stereo.right", pair.right());
  if (!right.ok()) return right.status();
  return Pictures{*std::move(left), *std::move(right)};
}

absl::StatusOr<Pictures> FromFrames(const v1::Frames& frames) {
  if (frames.pictures().empty())
    return InvalidField("clip.frames.pictures", "is empty; expected at least one frame");
  const double rate = frames.frames_per_second();
  if (!(rate >= 0 && rate <= kMaxFrameRate)) {
    return InvalidField("clip.frames.frames_per_second",
                        absl::StrCat("is ", rate, "; expected 0 to ", kMaxFrameRate));
  }
  Pictures pictures;
  for (int i = 0; i < frames.pictures_size(); ++i) {
    auto picture = FromPicture(absl::StrCat("clip.frames.pictures[", i, "]"), frames.pictures(i));
    if (!picture.ok()) return picture.status();
    pictures.push_back(*std::move(picture));
  }
  return pictures;
}

absl::StatusOr<Pictures> FromClip(const v1::Clip& clip) {
  switch (clip.content_case()) {
    case v1::Clip::kVideo:
      return Pictures{FromEncoded(clip.video())};
    case v1::Clip::kFrames:
      return FromFrames(clip.frames());
    case v1::Clip::CONTENT_NOT_SET:
      break;
  }
  return InvalidField("clip", "is empty; set 'video' to a whole file, or 'frames'");
}

absl::StatusOr<Pictures> FromVolume(const v1::Volume& volume) {
  switch (volume.content_case()) {
    case v1::Volume::kTiff:
      return Pictures{FromEncoded(volume.tiff())};
    case v1::Volume::kRaw: {
      auto raw = FromRawVolume("volume.raw", volume.raw().shape(), volume.raw().voxels());
      if (!raw.ok()) return raw.status();
      return Pictures{*std::move(raw)};
    }
    case v1::Volume::CONTENT_NOT_SET:
      break;
  }
  return InvalidField("volume", "is empty; set 'tiff' to a whole file, or 'raw'");
}

absl::StatusOr<Pictures> Single(absl::StatusOr<Picture> picture) {
  if (!picture.ok()) return picture.status();
  return Pictures{*std::move(picture)};
}

// The input's pictures. Also sets the input's name and medium.
absl::StatusOr<Pictures> ReadInput(const v1::PredictRequest& message, Request& request) {
  request.medium = models::Medium::kPictures;
  switch (message.input_case()) {
    case v1::PredictRequest::kEncoded:
      request.input_name = "encoded";
      return Pictures{FromEncoded(message.encoded())};
    case v1::PredictRequest::kRaw:
      request.input_name = "raw";
      return Single(FromRaw("raw", message.raw()));
    case v1::PredictRequest::kStereo:
      request.input_name = "stereo";
      return FromPair(message.stereo());
    case v1::PredictRequest::kClip:
      request.input_name = "clip";
      request.medium = models::Medium::kClip;
      request.frames_per_second = message.clip().frames().frames_per_second();
      return FromClip(message.clip());
    case v1::PredictRequest::kVolume:
      request.input_name = "volume";
      request.medium = models::Medium::kVolume;
      return FromVolume(message.volume());
    case v1::PredictRequest::INPUT_NOT_SET:
      break;
  }
  return InvalidField(
      "input",
      "is missing; set 'encoded' to a whole JPEG, PNG, WebP, TIFF or BMP file, 'raw' to pixels, "
      "'stereo' to two pictures, 'clip' to a video or frames, or 'volume' to a TIFF or voxels");
}

// Memory for a map of the size that the request asks for, and for its encoding.
int64_t MapBytes(const v1::PredictRequest& message) {
  const auto pixels = [](const v1::OutputSize& size) { return int64_t{size.width()} * size.height(); };
  if (message.has_segmentation()) return 2 * pixels(message.segmentation().size());
  if (message.has_stereo_options()) return 2 * sizeof(float) * pixels(message.stereo_options().size());
  return 0;
}

}  // namespace

void SetDuration(absl::Duration duration, google::protobuf::Duration* message) {
  message->set_seconds(absl::IDivDuration(duration, absl::Seconds(1), &duration));
  message->set_nanos(static_cast<int32_t>(absl::ToInt64Nanoseconds(duration)));
}

absl::StatusOr<Request> FromFields(const RequestFields& fields, std::string_view protocol) {
  if (absl::Status status = CheckFields(fields); !status.ok()) return status;
  Request request;
  request.model = std::string(fields.model);
  request.version = fields.version;
  request.id = std::string(fields.request_id);
  request.priority = fields.priority;
  request.protocol = protocol;
  return request;
}

absl::StatusOr<Request> FromMessage(const v1::PredictRequest& message) {
  auto checked =
      FromFields({message.model(), message.version(), message.request_id(), message.priority()}, "grpc");
  if (!checked.ok()) return checked.status();
  if (absl::Status options = CheckOptions(message); !options.ok()) return options;
  Request request = *std::move(checked);
  request.map_bytes = MapBytes(message);
  request.accepts = [&message](const models::Description& model) { return CheckOptionsFit(message, model); };
  if (message.has_region()) {
    auto region = FromRegion(message);
    if (!region.ok()) return region.status();
    request.region = *region;
  }
  if (message.has_tiles()) {
    const auto tiles = FromTiles(message);
    if (!tiles.ok()) return tiles.status();
    request.tiles = *tiles;
  }
  if (message.has_explain()) request.explain = WishOf(message.explain());
  auto pictures = ReadInput(message, request);
  if (!pictures.ok()) return pictures.status();
  // All of them form one item.
  request.views = static_cast<int>(pictures->size());
  request.input = *std::move(pictures);
  return request;
}

void SetFacts(const Response& response, const std::string& request_id, v1::PredictResponse* message) {
  message->set_model(response.model);
  message->set_version(response.version);
  message->set_request_id(request_id);
  message->set_batch_size(static_cast<int32_t>(response.batch_size));
  message->set_picture_width(response.sent.at(0).width);
  message->set_picture_height(response.sent.at(0).height);
}

void SetTimings(const Timings& timings, v1::PredictResponse* message) {
  v1::Timings* const told = message->mutable_timings();
  SetDuration(timings.decode, told->mutable_decode());
  SetDuration(timings.queue, told->mutable_queue());
  SetDuration(timings.infer, told->mutable_infer());
  SetDuration(timings.encode, told->mutable_encode());
  SetDuration(timings.total, told->mutable_total());
}

absl::Status ToMessage(const Response& response, const v1::PredictRequest& request,
                       v1::PredictResponse* message) {
  SetFacts(response, request.request_id(), message);
  if (response.explanation) {
    absl::Status explained = SetExplanation(*response.explanation, message->mutable_explanation());
    if (!explained.ok()) return explained;
    SetSeen(response.description->input, response.sent.at(0), message->mutable_explanation());
  }
  return SetResult(response, request, message);
}

absl::Status SetAnswer(const Response& response, const v1::PredictRequest& request, int64_t max,
                       v1::PredictResponse* message, int64_t around) {
  if (absl::Status made = ToMessage(response, request, message); !made.ok()) return made;
  return CheckSize(*message, max, around + kMaxTimings);
}

namespace {

void ToMessage(const PromotionState& promotion, v1::Promotion* message) {
  auto state = v1::Promotion::MEASURING;
  if (promotion.promoted) state = *promotion.promoted ? v1::Promotion::PROMOTED : v1::Promotion::REFUSED;
  message->set_state(state);
  message->set_rule(promotion.rule);
  message->set_shadow(promotion.shadow);
  message->set_replaces(promotion.replaces);
  message->set_reason(promotion.reason);
}

}  // namespace

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
    case ModelSnapshot::State::kUnloading:
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
  if (snapshot.state != ModelSnapshot::State::kReady || snapshot.ensemble) return;
  message->set_task(models::TaskName(description.task));
  message->mutable_options()->insert(description.options.begin(), description.options.end());
  // A program takes named tensors of its own shapes (ModelMetadata).
  if (description.task != models::Task::kTensors) {
    const models::Size largest = models::LargestInput(description.input);
    message->set_input_width(static_cast<int32_t>(largest.width));
    message->set_input_height(static_cast<int32_t>(largest.height));
  }
  message->set_classes(description.classes);
  message->set_views(static_cast<int32_t>(description.input.views));
  message->set_max_frames(static_cast<int32_t>(description.input.clip.max_frames));
  message->set_frames_per_second(description.input.clip.frames_per_second);
  message->set_max_voxels(description.input.volume.max_voxels);
  const bool sized = description.input.medium != models::Medium::kPictures;
  if (description.input.fit == models::Fit::kKeepRatio && !sized) {
    message->set_buckets(models::AsText(description.input.buckets));
  }
  for (const std::string& label : description.labels) message->add_labels(label);
  for (const std::string& layer : description.attention_layers) message->add_attention_layers(layer);
  message->set_attention_by_position(description.attention_by_position);
  message->set_precision(snapshot.precision);
  message->set_precision_reason(snapshot.precision_reason);
  message->set_weights_sha256(snapshot.identity.weights_sha256);
  message->set_instruction_set(snapshot.identity.instruction_set);
  message->set_configuration_sha256(snapshot.identity.configuration_sha256);
  message->set_attestation_key_sha256(snapshot.identity.attestation_key_sha256);
  if (snapshot.promotion) ToMessage(*snapshot.promotion, message->mutable_promotion());
}

}  // namespace saccade::server
