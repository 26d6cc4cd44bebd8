#include "server/engine/picture_items.h"

#include <algorithm>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "server/decode/prepare.h"
#include "server/engine/item_error.h"

namespace saccade::server {
namespace {

// Names the picture that an error is about in terms of the client's request.
absl::Status AtPicture(const absl::Status& status, const Request& request, int64_t item, int64_t view) {
  if (request.views != 2) return AtItem(status, request, "picture", item);
  return AtItem(status, request, "pair", item, view == 0 ? "left: " : "right: ");
}

// Asks whether an item whose first picture has this header would be accepted. The orientation, which is only
// known after decoding, may put it in either of two buckets.
absl::Status ConsiderItem(const ItemSink& sink, const models::ImageInput& input,
                          const PictureHeader& header) {
  const std::optional<Region>& region = sink.request().region;
  const models::Size stored = {header.height, header.width};
  const models::Size sent = region ? models::Size{region->height, region->width} : stored;
  const int64_t upright = BucketId(models::PlacementOf(input, sent));
  if (region) return sink.Consider({upright});
  const int64_t turned = BucketId(models::PlacementOf(input, {sent.width, sent.height}));
  if (upright == turned) return sink.Consider({upright});
  return sink.Consider({upright, turned});
}

// Decodes the pictures of one item.
absl::StatusOr<std::vector<DecodedPicture>> DecodeViews(ItemSink& sink, const models::ImageInput& input,
                                                        const Decoder& decoder, const StillWanted& wanted,
                                                        int64_t item, ResultMap map) {
  const Request& request = sink.request();
  const auto& pictures = std::get<std::vector<Picture>>(request.input);
  std::vector<DecodedPicture> views;
  for (int64_t view = 0; view < input.views; ++view) {
    const Picture& picture = pictures[item * input.views + view];
    if (absl::Status taken = sink.AddDecodedBytes(decoder.CopiedBytes(picture)); !taken.ok()) return taken;
    const auto header = decoder.ReadHeader(picture, wanted);
    if (!header.ok()) return AtPicture(header.status(), request, item, view);
    if (item == 0 && view == 0) {
      if (absl::Status worth = ConsiderItem(sink, input, *header); !worth.ok()) return worth;
    }
    if (absl::Status fits = CheckMaps(*header, map); !fits.ok()) return AtPicture(fits, request, item, view);
    const auto pixels = DecodedPixels(*header, request.region, decoder.limits());
    if (!pixels.ok()) return AtPicture(pixels.status(), request, item, view);
    const int64_t bytes = PictureBytes(*pixels) + header->copied_bytes;
    if (absl::Status taken = sink.AddDecodedBytes(bytes); !taken.ok()) return taken;
    auto decoded = decoder.Decode(picture, *header, input, request.region, wanted);
    if (!decoded.ok()) return AtPicture(decoded.status(), request, item, view);
    views.push_back(*std::move(decoded));
  }
  return views;
}

absl::Status CheckPair(const Request& request, const std::vector<DecodedPicture>& views, int64_t item) {
  const models::Size left = views.front().whole;
  const models::Size right = views.back().whole;
  if (left == right) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      std::string(request.input_name), ": ", request.size() == 1 ? "" : absl::StrCat("pair ", item, ": "),
      "the left picture is ", left.width, " x ", left.height, " pixels, the right one ", right.width, " x ",
      right.height, "; both pictures of a stereo pair must have the same size"));
}

}  // namespace

absl::Status MakePictureItem(ItemSink& sink, const models::ImageInput& input, const Decoder& decoder,
                             const StillWanted& wanted, int64_t item, ResultMap map) {
  auto views = DecodeViews(sink, input, decoder, wanted, item, map);
  if (!views.ok()) return views.status();
  if (absl::Status pair = CheckPair(sink.request(), *views, item); !pair.ok()) return pair;
  const models::Size whole = views->front().whole;
  const int64_t beyond = std::max<int64_t>(0, MapBytes(map) - PictureBytes(input.views));
  if (absl::Status taken = sink.AddDecodedBytes(beyond * whole.height * whole.width); !taken.ok())
    return taken;
  const models::Size sent = views->front().sent;
  const models::Placement placement = models::PlacementOf(input, sent);
  const int64_t floats = 3 * placement.bucket.height * placement.bucket.width;
  if (absl::Status taken = sink.AddDecodedBytes(FloatBytes(input.views * floats)); !taken.ok()) return taken;
  auto room = Allocate(input.views * floats);
  if (!room.ok()) return room.status();
  const absl::Span<float> pixels(room->get(), input.views * floats);
  int64_t writing = 0;
  for (int64_t view = 0; view < input.views; ++view) {
    absl::Status taken = ChargeWriting(sink, (*views)[view], input, placement, writing);
    if (!taken.ok()) return taken;
    absl::Status written =
        WriteInput((*views)[view], input, placement, pixels.subspan(view * floats, floats));
    if (!written.ok()) return AtPicture(written, sink.request(), item, view);
  }
  sink.AddItem({placement, absl::Span<const float>(pixels), *std::move(room)});
  sink.AddSent({.width = static_cast<int>(whole.width),
                .height = static_cast<int>(whole.height),
                .scaled = placement.scaled,
                .region = sink.request().region});
  return absl::OkStatus();
}

}  // namespace saccade::server
