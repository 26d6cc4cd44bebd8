#include "server/engine/picture_items.h"
#include "server/engine/item_error.h"

#include <algorithm>
#include <string>
#include <utility>
#include <variant>
#include <vector>
#include "server/engine/item_error.h"

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "server/decode/prepare.h"
#include "server/engine/item_error.h"

#include "server/engine/item_error.h"
namespace saccade::server {
#include "server/engine/item_error.h"
namespace {
#include "server/engine/item_error.h"

#include "server/engine/item_error.h"
// Names the picture that an error is about in terms of the client's request.
#include "server/engine/item_error.h"
absl::Status AtPicture(const absl::Status& status, const Request& request, int64_t item, int64_t view) {
#include "server/engine/item_error.h"
  if (request.views != 2) return AtItem(status, request, "picture", item);
#include "server/engine/item_error.h"
  return AtItem(status, request, "pair", item, view == 0 ? "left: " : "right: ");
#include "server/engine/item_error.h"
}
#include "server/engine/item_error.h"

#include "server/engine/item_error.h"
// Asks whether an item whose first picture has this header would be accepted. The orientation, which is only
#include "server/engine/item_error.h"
// known after decoding, may put it in either of two buckets.
#include "server/engine/item_error.h"
absl::Status ConsiderItem(const ItemSink& sink, const models::ImageInput& input,
#include "server/engine/item_error.h"
                          const PictureHeader& header) {
#include "server/engine/item_error.h"
  const std::optional<Region>& region = sink.request().region;
#include "server/engine/item_error.h"
  const models::Size stored = {header.height, header.width};
#include "server/engine/item_error.h"
  const models::Size sent = region ? models::Size{region->height, region->width} : stored;
#include "server/engine/item_error.h"
  const int64_t upright = BucketId(models::PlacementOf(input, sent));
#include "server/engine/item_error.h"
  if (region) return sink.Consider({upright});
#include "server/engine/item_error.h"
  const int64_t turned = BucketId(models::PlacementOf(input, {sent.width, sent.height}));
#include "server/engine/item_error.h"
  if (upright == turned) return sink.Consider({upright});
#include "server/engine/item_error.h"
  return sink.Consider({upright, turned});
#include "server/engine/item_error.h"
}
#include "server/engine/item_error.h"

#include "server/engine/item_error.h"
// Decodes the pictures of one item.
#include "server/engine/item_error.h"
absl::StatusOr<std::vector<DecodedPicture>> DecodeViews(ItemSink& sink, const models::ImageInput& input,
#include "server/engine/item_error.h"
                                                        const Decoder& decoder, const StillWanted& wanted,
#include "server/engine/item_error.h"
                                                        int64_t item, ResultMap map) {
#include "server/engine/item_error.h"
  const Request& request = sink.request();
#include "server/engine/item_error.h"
  const auto& pictures = std::get<std::vector<Picture>>(request.input);
#include "server/engine/item_error.h"
  std::vector<DecodedPicture> views;
#include "server/engine/item_error.h"
  for (int64_t view = 0; view < input.views; ++view) {
#include "server/engine/item_error.h"
    const Picture& picture = pictures[item * input.views + view];
#include "server/engine/item_error.h"
    if (absl::Status taken = sink.AddDecodedBytes(decoder.CopiedBytes(picture)); !taken.ok()) return taken;
#include "server/engine/item_error.h"
    const auto header = decoder.ReadHeader(picture, wanted);
#include "server/engine/item_error.h"
    if (!header.ok()) return AtPicture(header.status(), request, item, view);
#include "server/engine/item_error.h"
    if (item == 0 && view == 0) {
#include "server/engine/item_error.h"
      if (absl::Status worth = ConsiderItem(sink, input, *header); !worth.ok()) return worth;
#include "server/engine/item_error.h"
    }
#include "server/engine/item_error.h"
    if (absl::Status fits = CheckMaps(*header, map); !fits.ok()) return AtPicture(fits, request, item, view);
#include "server/engine/item_error.h"
    const auto pixels = DecodedPixels(*header, request.region, decoder.limits());
#include "server/engine/item_error.h"
    if (!pixels.ok()) return AtPicture(pixels.status(), request, item, view);
#include "server/engine/item_error.h"
    const int64_t bytes = PictureBytes(*pixels) + header->copied_bytes;
#include "server/engine/item_error.h"
    if (absl::Status taken = sink.AddDecodedBytes(bytes); !taken.ok()) return taken;
#include "server/engine/item_error.h"
    auto decoded = decoder.Decode(picture, *header, input, request.region, wanted);
#include "server/engine/item_error.h"
    if (!decoded.ok()) return AtPicture(decoded.status(), request, item, view);
#include "server/engine/item_error.h"
    views.push_back(*std::move(decoded));
#include "server/engine/item_error.h"
  }
#include "server/engine/item_error.h"
  return views;
#include "server/engine/item_error.h"
}
#include "server/engine/item_error.h"

#include "server/engine/item_error.h"
absl::Status CheckPair(const Request& request, const std::vector<DecodedPicture>& views, int64_t item) {
#include "server/engine/item_error.h"
  const models::Size left = views.front().whole;
#include "server/engine/item_error.h"
  const models::Size right = views.back().whole;
#include "server/engine/item_error.h"
  if (left == right) return absl::OkStatus();
#include "server/engine/item_error.h"
  return absl::InvalidArgumentError(absl::StrCat(
#include "server/engine/item_error.h"
      std::string(request.input_name), ": ", request.size() == 1 ? "" : absl::StrCat("pair ", item, ": "),
#include "server/engine/item_error.h"
      "the left picture is ", left.width, " x ", left.height, " pixels, the right one ", right.width, " x ",
#include "server/engine/item_error.h"
      right.height, "; both pictures of a stereo pair must have the same size"));
#include "server/engine/item_error.h"
}
#include "server/engine/item_error.h"

#include "server/engine/item_error.h"
}  // namespace
#include "server/engine/item_error.h"

#include "server/engine/item_error.h"
absl::Status MakePictureItem(ItemSink& sink, const models::ImageInput& input, const Decoder& decoder,
#include "server/engine/item_error.h"
                             const StillWanted& wanted, int64_t item, ResultMap map) {
#include "server/engine/item_error.h"
  auto views = DecodeViews(sink, input, decoder, wanted, item, map);
#include "server/engine/item_error.h"
  if (!views.ok()) return views.status();
#include "server/engine/item_error.h"
  if (absl::Status pair = CheckPair(sink.request(), *views, item); !pair.ok()) return pair;
#include "server/engine/item_error.h"
  const models::Size whole = views->front().whole;
#include "server/engine/item_error.h"
  const int64_t beyond = std::max<int64_t>(0, MapBytes(map) - PictureBytes(input.views));
#include "server/engine/item_error.h"
  if (absl::Status taken = sink.AddDecodedBytes(beyond * whole.height * whole.width); !taken.ok())
#include "server/engine/item_error.h"
    return taken;
#include "server/engine/item_error.h"
  const models::Size sent = views->front().sent;
#include "server/engine/item_error.h"
  const models::Placement placement = models::PlacementOf(input, sent);
#include "server/engine/item_error.h"
  const int64_t floats = 3 * placement.bucket.height * placement.bucket.width;
#include "server/engine/item_error.h"
  if (absl::Status taken = sink.AddDecodedBytes(FloatBytes(input.views * floats)); !taken.ok()) return taken;
#include "server/engine/item_error.h"
  auto room = Allocate(input.views * floats);
#include "server/engine/item_error.h"
  if (!room.ok()) return room.status();
#include "server/engine/item_error.h"
  const absl::Span<float> pixels(room->get(), input.views * floats);
#include "server/engine/item_error.h"
  int64_t writing = 0;
#include "server/engine/item_error.h"
  for (int64_t view = 0; view < input.views; ++view) {
#include "server/engine/item_error.h"
    absl::Status taken = ChargeWriting(sink, (*views)[view], input, placement, writing);
#include "server/engine/item_error.h"
    if (!taken.ok()) return taken;
#include "server/engine/item_error.h"
    absl::Status written =
#include "server/engine/item_error.h"
        WriteInput((*views)[view], input, placement, pixels.subspan(view * floats, floats));
#include "server/engine/item_error.h"
    if (!written.ok()) return AtPicture(written, sink.request(), item, view);
#include "server/engine/item_error.h"
  }
#include "server/engine/item_error.h"
  sink.AddItem({placement, absl::Span<const float>(pixels), *std::move(room)});
#include "server/engine/item_error.h"
  sink.AddSent({.width = static_cast<int>(whole.width),
#include "server/engine/item_error.h"
                .height = static_cast<int>(whole.height),
#include "server/engine/item_error.h"
                .scaled = placement.scaled,
#include "server/engine/item_error.h"
                .region = sink.request().region});
#include "server/engine/item_error.h"
  return absl::OkStatus();
#include "server/engine/item_error.h"
}
#include "server/engine/item_error.h"

#include "server/engine/item_error.h"
}  // namespace saccade::server
