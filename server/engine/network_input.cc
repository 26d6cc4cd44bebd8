#include "server/engine/network_input.h"

#include <algorithm>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/batching/batch_task.h"
#include "server/engine/clip_items.h"
#include "server/engine/picture_items.h"
#include "server/engine/tensor_items.h"
#include "server/engine/tile_items.h"
#include "server/engine/volume_items.h"

namespace saccade::server {
namespace {

const char* Wanted(const models::ImageInput& input) {
  switch (input.medium) {
    case models::Medium::kClip:
      return "takes clips; send a video or frames";
    case models::Medium::kVolume:
      return "takes volumes; send a TIFF or raw voxels";
    case models::Medium::kPictures:
      break;
  }
  return input.views == 2 ? "takes stereo pairs; send left and right"
                          : "takes one picture, not a stereo pair";
}

bool FitsViews(const Request& request, const models::ImageInput& input) {
  if (input.medium == models::Medium::kClip) return true;
  return request.views == input.views;
}

// Raw voxels are only accepted as a volume, raw pixels never.
bool FitsKind(const Picture& picture, const models::ImageInput& input) {
  if (std::holds_alternative<EncodedPicture>(picture)) return true;
  return std::holds_alternative<RawVolume>(picture) == (input.medium == models::Medium::kVolume);
}

absl::Status CheckFrames(const Request& request, const models::ImageInput& input) {
  if (input.medium != models::Medium::kClip || request.views <= input.clip.max_frames)
    return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(std::string(request.input_name), ": the clip has ",
                                                 request.views, " frames; the model takes at most ",
                                                 input.clip.max_frames, ", so split it into shorter clips"));
}

absl::Status MakeItem(ItemSink& sink, const models::ImageInput& input, const Decoder& decoder,
                      const StillWanted& wanted, int64_t item, const models::TileRules& tiles,
                      ResultMap map) {
  switch (input.medium) {
    case models::Medium::kPictures:
      if (tiles.size > 0) return MakeTileItems(sink, input, decoder, wanted, item, tiles, map);
      return MakePictureItem(sink, input, decoder, wanted, item, map);
    case models::Medium::kClip:
      return MakeClipItem(sink, input, decoder, wanted, item);
    case models::Medium::kVolume:
      return MakeVolumeItem(sink, input, decoder, wanted, item);
  }
  return absl::InternalError("the kind of the model's input is unknown; this is a bug in saccaded");
}

}  // namespace

absl::Status CheckInput(const Request& request, const std::string& model, const models::ImageInput& input) {
  if (const auto* tensor = std::get_if<TensorInput>(&request.input)) return CheckTensor(*tensor, input);
  if (std::holds_alternative<NamedTensors>(request.input)) {
    return absl::InvalidArgumentError(
        absl::StrCat("model '", model, "' ", Wanted(input), ", as its input 'image'"));
  }
  const auto& pictures = std::get<std::vector<Picture>>(request.input);
  const bool fits =
      request.medium.value_or(input.medium) == input.medium && FitsViews(request, input) &&
      std::all_of(pictures.begin(), pictures.end(), [&](const Picture& one) { return FitsKind(one, input); });
  if (fits) return CheckFrames(request, input);
  return absl::InvalidArgumentError(
      absl::StrCat(std::string(request.input_name), ": model '", model, "' ", Wanted(input)));
}

bool IsReady(const Request& request) { return !std::holds_alternative<std::vector<Picture>>(request.input); }

absl::Status MakeItems(ItemSink& sink, const models::ImageInput& input, const Decoder& decoder, Clock* clock,
                       const models::TileRules& tiles, ResultMap map) {
  const Request& request = sink.request();
  if (const auto* tensor = std::get_if<TensorInput>(&request.input))
    return MakeTensorItems(sink, *tensor, input);
  const StillWanted wanted = [&sink, clock] { return CheckAlive(sink.traits(), clock->Now()); };
  for (int64_t item = 0; item < request.size(); ++item) {
    if (absl::Status alive = wanted(); !alive.ok()) return alive;
    if (absl::Status made = MakeItem(sink, input, decoder, wanted, item, tiles, map); !made.ok()) return made;
  }
  return absl::OkStatus();
}

}  // namespace saccade::server
