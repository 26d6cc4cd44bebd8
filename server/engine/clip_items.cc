#include "server/engine/clip_items.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/decode/prepare.h"
#include "server/decode/video.h"
#include "server/engine/item_error.h"
#include "server/engine/item_memory.h"

namespace saccade::server {
namespace {

// Consecutive frames, [3, height, width] each, in a buffer that grows as needed.
class Frames {
 public:
  Frames(ItemSink& sink, const models::ImageInput& input, models::Size sent)
      : sink_(sink), input_(input), sent_(sent), placement_(models::PlacementOfClip(input, sent, 1)) {}

  // Makes the buffer hold at least `frames` frames.
  absl::Status Reserve(int64_t frames) {
    if (frames <= room_) return absl::OkStatus();
    // While the frames are copied there are both buffers. A charge is returned only when the call ends.
    if (absl::Status taken = sink_.AddDecodedBytes(FloatBytes(frames * Floats())); !taken.ok()) return taken;
    auto larger = Allocate(frames * Floats());
    if (!larger.ok()) return larger.status();
    if (count_ > 0) std::memcpy(larger->get(), values_.get(), count_ * Floats() * sizeof(float));
    values_ = *std::move(larger);
    room_ = frames;
    return absl::OkStatus();
  }

  absl::Status Add(const DecodedPicture& picture) {
    if (picture.sent != sent_) {
      return absl::InvalidArgumentError(absl::StrCat("it is ", picture.sent.width, " x ", picture.sent.height,
                                                     " pixels, frame 0 is ", sent_.width, " x ", sent_.height,
                                                     "; all frames of a clip must have the same size"));
    }
    if (absl::Status room = ReserveOne(); !room.ok()) return room;
    if (absl::Status taken = ChargeWriting(sink_, picture, input_, placement_, writing_); !taken.ok())
      return taken;
    const absl::Span<float> out(values_.get() + count_ * Floats(), Floats());
    absl::Status written = WriteInput(picture, input_, placement_, out);
    if (written.ok()) ++count_;
    return written;
  }

  // Adds the last frame again. REQUIRES: count() > 0.
  absl::Status Repeat() {
    if (absl::Status room = ReserveOne(); !room.ok()) return room;
    float* const out = values_.get() + count_ * Floats();
    std::copy_n(out - Floats(), Floats(), out);
    ++count_;
    return absl::OkStatus();
  }

  // Adds the item. The remaining frames are zero.
  absl::Status Finish(double frames_per_second) {
    const models::Placement placement = models::PlacementOfClip(input_, sent_, count_);
    if (absl::Status room = Reserve(placement.depth); !room.ok()) return room;
    std::fill_n(values_.get() + count_ * Floats(), (placement.depth - count_) * Floats(), 0.0F);
    const absl::Span<const float> pixels(values_.get(), placement.depth * Floats());
    sink_.AddItem({placement, pixels, std::move(values_)});
    sink_.AddSent({.width = static_cast<int>(sent_.width),
                   .height = static_cast<int>(sent_.height),
                   .frames_per_second = frames_per_second});
    return absl::OkStatus();
  }

  int64_t count() const { return count_; }

 private:
  absl::Status ReserveOne() {
    if (count_ < room_) return absl::OkStatus();
    return Reserve(Multiple(2 * std::max<int64_t>(1, room_)));
  }
  int64_t Floats() const { return 3 * placement_.bucket.height * placement_.bucket.width; }
  int64_t Multiple(int64_t frames) const {
    return std::min(models::PlacementOfClip(input_, sent_, frames).depth,
                    models::PlacementOfClip(input_, sent_, input_.clip.max_frames).depth);
  }

  ItemSink& sink_;
  const models::ImageInput& input_;
  const models::Size sent_;
  const models::Placement placement_;  // of one frame
  std::unique_ptr<float[]> values_;
  int64_t room_ = 0;
  int64_t count_ = 0;
  int64_t writing_ = 0;  // bytes charged for ChargeWriting()
};

std::string FrameText(int64_t frame) { return absl::StrCat("frame ", frame, ": "); }

// Asks whether a clip whose first frame has this header would be accepted. Its orientation, which is only
// known after decoding, may put it in either of two buckets.
absl::Status ConsiderClip(const ItemSink& sink, const models::ImageInput& input,
                          const PictureHeader& header) {
  const auto bucket = [&](models::Size sent) {
    return BucketId(models::PlacementOfClip(input, sent, sink.request().views));
  };
  return sink.Consider({bucket({header.height, header.width}), bucket({header.width, header.height})});
}

absl::Status MakeFromPictures(ItemSink& sink, const models::ImageInput& input, const Decoder& decoder,
                              const StillWanted& wanted, int64_t item) {
  const Request& request = sink.request();
  const auto& pictures = std::get<std::vector<Picture>>(request.input);
  std::unique_ptr<Frames> frames;
  // Frames are decoded one at a time, so only the largest is charged.
  int64_t charged = 0;
  for (int64_t frame = 0; frame < request.views; ++frame) {
    if (absl::Status alive = wanted(); !alive.ok()) return alive;
    const Picture& picture = pictures[item * request.views + frame];
    const int64_t copied = decoder.CopiedBytes(picture);
    if (copied > charged) {
      if (absl::Status taken = sink.AddDecodedBytes(copied - charged); !taken.ok()) return taken;
      charged = copied;
    }
    const auto header = decoder.ReadHeader(picture, wanted);
    if (!header.ok()) return AtItem(header.status(), request, "clip", item, FrameText(frame));
    if (absl::Status whole = CheckWhole(*header); !whole.ok())
      return AtItem(whole, request, "clip", item, FrameText(frame));
    if (item == 0 && frame == 0) {
      if (absl::Status worth = ConsiderClip(sink, input, *header); !worth.ok()) return worth;
    }
    const int64_t bytes = PictureBytes(header->pixels()) + header->copied_bytes + copied;
    if (bytes > charged) {
      absl::Status taken = sink.AddDecodedBytes(bytes - charged);
      if (!taken.ok()) return taken;
      charged = bytes;
    }
    auto decoded = decoder.Decode(picture, *header, input, std::nullopt, wanted);
    if (!decoded.ok()) return AtItem(decoded.status(), request, "clip", item, FrameText(frame));
    if (frames == nullptr) {
      frames = std::make_unique<Frames>(sink, input, decoded->sent);
      const int64_t depth = models::PlacementOfClip(input, decoded->sent, request.views).depth;
      if (absl::Status room = frames->Reserve(depth); !room.ok()) return room;
    }
    if (absl::Status added = frames->Add(*decoded); !added.ok())
      return AtItem(added, request, "clip", item, FrameText(frame));
  }
  const double rate =
      request.frames_per_second > 0 ? request.frames_per_second : input.clip.frames_per_second;
  return frames->Finish(rate);
}

// Asks whether a clip of the size and length that the video claims would be accepted. A video that states no
// length is taken for one frame, which takes the least time.
absl::Status ConsiderVideo(const ItemSink& sink, const models::ImageInput& input, const Video& video) {
  const double step = video.frames_per_second() / input.clip.frames_per_second;
  const double claimed = std::ceil(static_cast<double>(video.claimed_frames()) / step - 1e-6);
  const double most = static_cast<double>(input.clip.max_frames);
  const auto frames = static_cast<int64_t>(std::max(1.0, std::min(claimed, most)));
  return sink.Consider({BucketId(models::PlacementOfClip(input, video.size(), frames))});
}

absl::Status TooLong(const Video& video, const models::ClipInput& clip) {
  const std::string claim =
      video.claimed_frames() > 0
          ? absl::StrCat("; the file claims ",
                         static_cast<double>(video.claimed_frames()) / video.frames_per_second(), " seconds")
          : "";
  return absl::InvalidArgumentError(absl::StrCat(
      "the video is too long: at ", clip.frames_per_second, " frames per second the model takes at most ",
      clip.max_frames, " frames, ", static_cast<double>(clip.max_frames) / clip.frames_per_second, " seconds",
      claim, "; split it into shorter videos"));
}

// A video may have many more frames than the model takes, which are decoded and left out; a few bytes
// describe a frame in which nothing changes. Together they may have an eighth of the pixels of the model's
// clip of the largest pictures, or as many as one of these, if that is more.
absl::Status CheckDecoded(const Video& video, const models::ClipInput& clip, const DecodeLimits& limits) {
  const int64_t max = std::max(limits.max_pixels, clip.max_frames * limits.max_pixels / 8);
  if (video.decoded_pixels() <= max) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "the frames of the video have more than ", max, " pixels together: it has ", video.frames_per_second(),
      " frames of ", video.size().width, " x ", video.size().height, " in a second, of which the model sees ",
      clip.frames_per_second, "; send fewer or smaller frames"));
}

absl::Status MakeFromVideo(ItemSink& sink, const models::ImageInput& input, const Decoder& decoder,
                           const StillWanted& wanted, int64_t item, const EncodedPicture& file) {
  const Request& request = sink.request();
  const models::ClipInput& clip = input.clip;
  const std::string_view bytes = file.data.bytes;
  if (absl::Status taken = sink.AddDecodedBytes(decoder.CopiedBytes(file)); !taken.ok()) return taken;
  auto opened = decoder.OpenVideo(bytes, wanted);
  if (!opened.ok()) return AtItem(opened.status(), request, "clip", item);
  Video& video = **opened;
  if (item == 0) {
    if (absl::Status worth = ConsiderVideo(sink, input, video); !worth.ok()) return worth;
  }
  const models::Size size = video.size();
  // FFmpeg keeps an index of the file and some frames, and one frame is converted.
  int64_t held = video.memory_bytes();
  const int64_t rest = static_cast<int64_t>(bytes.size()) + PictureBytes(size.height * size.width);
  if (absl::Status taken = sink.AddDecodedBytes(held + rest); !taken.ok()) return taken;
  const double step = video.frames_per_second() / clip.frames_per_second;
  const auto source = [step](int64_t frame) {
    // A position within a rounding error before a frame counts as that frame.
    return static_cast<int64_t>(std::floor(static_cast<double>(frame) * step + 1e-6));
  };
  std::optional<Frames> frames;
  int64_t seen = 0;  // number of the file's frames so far
  for (; video.Skip(); ++seen) {
    if (absl::Status alive = wanted(); !alive.ok()) return alive;
    if (absl::Status few = CheckDecoded(video, clip, decoder.limits()); !few.ok())
      return AtItem(few, request, "clip", item);
    if (const int64_t more = video.memory_bytes() - held; more > 0) {
      if (absl::Status taken = sink.AddDecodedBytes(more); !taken.ok()) return taken;
      held += more;
    }
    if (!frames) frames.emplace(sink, input, video.size());
    if (source(frames->count()) != seen) continue;
    auto picture = video.Last();
    if (!picture.ok()) return AtItem(picture.status(), request, "clip", item, FrameText(frames->count()));
    // If the video's frame rate is lower than the model's, frames are repeated.
    for (bool is_first = true; source(frames->count()) == seen; is_first = false) {
      if (frames->count() == clip.max_frames) return AtItem(TooLong(video, clip), request, "clip", item);
      if (absl::Status added = is_first ? frames->Add(*picture) : frames->Repeat(); !added.ok())
        return AtItem(added, request, "clip", item, FrameText(frames->count()));
    }
  }
  if (absl::Status end = video.status(); !end.ok()) return AtItem(end, request, "clip", item);
  if (!frames) {
    return AtItem(absl::InvalidArgumentError(
                      absl::StrCat("no frame of the video can be decoded as ", size.width, " x ", size.height,
                                   " pixels, the size that its header gives; try H.264 in MP4")),
                  request, "clip", item);
  }
  return frames->Finish(clip.frames_per_second);
}

}  // namespace

absl::Status MakeClipItem(ItemSink& sink, const models::ImageInput& input, const Decoder& decoder,
                          const StillWanted& wanted, int64_t item) {
  const Request& request = sink.request();
  if (request.views == 1) {
    const Picture& only = std::get<std::vector<Picture>>(request.input)[item];
    const auto* file = std::get_if<EncodedPicture>(&only);
    // A single picture is a clip of one frame. Anything else is read as a video, and errors say so.
    const bool picture = file == nullptr || IsTiff(file->data.bytes) ||
                         ReadPictureHeader(file->data.bytes, decoder.limits()).ok();
    if (!picture) return MakeFromVideo(sink, input, decoder, wanted, item, *file);
  }
  return MakeFromPictures(sink, input, decoder, wanted, item);
}

}  // namespace saccade::server
