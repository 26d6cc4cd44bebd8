// Fuzzes a picture: its header, its pixels, and both ways to prepare a network's input.
#include <algorithm>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "absl/types/span.h"
#include "models/api/placement.h"
#include "server/decode/prepare.h"
#include "tests/fuzz/costs.h"
#include "tests/fuzz/harness.h"

namespace saccade {
namespace {

// Small limits: large pictures take long and find nothing else.
constexpr server::DecodeLimits kLimits = {.max_pixels = 1 << 14, .max_bytes = 1 << 20};

models::ImageInput Cropped() {
  models::ImageInput input;
  input.height = input.width = 8;
  input.short_side = 9;
  return input;
}

models::ImageInput Whole() {
  models::ImageInput input;
  input.fit = models::Fit::kKeepRatio;
  input.short_side = 8;
  input.long_side = 16;
  input.antialias = false;
  input.buckets = {.sizes = {}, .stride = 4};
  return input;
}

void Prepare(const server::Picture& picture, const server::PictureHeader& header,
             const models::ImageInput& input) {
  const auto decoded = server::DecodePicture(picture, header, input);
  if (!decoded.ok()) {
    fuzz::Check(!decoded.status().message().empty(), "an error says what is wrong");
    return;
  }
  const models::Size sent = decoded->sent;
  fuzz::Check(sent.height * sent.width == header.pixels(), "a picture is as large as its header says");
  const models::Placement placement = models::PlacementOf(input, sent);
  std::vector<float> out(static_cast<size_t>(3 * placement.bucket.height * placement.bucket.width));
  fuzz::Check(server::WriteInput(*decoded, input, placement, absl::MakeSpan(out)).ok(),
              "what was decoded can be scaled");
}

// Reads the corners of a picture that is too large to be decoded whole.
void ReadRegions(const server::Picture& picture, const server::PictureHeader& header) {
  const std::string_view bytes = std::get<server::EncodedPicture>(picture).data.bytes;
  const int width = static_cast<int>(std::min<int64_t>(header.width, 40));
  const int height = static_cast<int>(std::min<int64_t>(header.height, 30));
  for (const bool last : {false, true}) {
    const server::Region region{.x = last ? static_cast<int>(header.width) - width : 0,
                                .y = last ? static_cast<int>(header.height) - height : 0,
                                .width = width,
                                .height = height};
    const auto part = server::DecodeRegion(bytes, header, region, kLimits);
    if (part.ok()) {
      fuzz::Check(part->pixels.width == width && part->pixels.height == height, "a region has its size");
    } else {
      fuzz::Check(!part.status().message().empty(), "an error says what is wrong");
    }
  }
  fuzz::Check(!server::DecodePicture(picture, header, Whole()).ok(), "such a picture is not decoded whole");
}

}  // namespace
}  // namespace saccade

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const saccade::fuzz::Costs costs(size);
  using saccade::fuzz::Check;
  const saccade::server::Picture picture =
      saccade::server::EncodedPicture{.data = {.owner = nullptr, .bytes = saccade::fuzz::AsText(data, size)}};
  const auto header = saccade::server::ReadHeader(picture, saccade::kLimits);
  if (!header.ok()) {
    Check(header.status().code() == absl::StatusCode::kInvalidArgument, "a bad picture is INVALID_ARGUMENT");
    Check(!header.status().message().empty(), "an error says what is wrong");
    return 0;
  }
  Check(header->width >= 1 && header->height >= 1, "a picture has pixels");
  if (header->by_regions) {
    saccade::ReadRegions(picture, *header);
    return 0;
  }
  Check(header->pixels() <= saccade::kLimits.max_pixels, "a picture is no larger than may be");
  saccade::Prepare(picture, *header, saccade::Cropped());
  saccade::Prepare(picture, *header, saccade::Whole());
  return 0;
}
