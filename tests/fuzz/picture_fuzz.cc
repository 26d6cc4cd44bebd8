// Fuzzes a picture: its header, its pixels, and both ways to prepare a network's input.
#include <string>
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
  Check(header->pixels() <= saccade::kLimits.max_pixels, "a picture is no larger than may be");
  saccade::Prepare(picture, *header, saccade::Cropped());
  saccade::Prepare(picture, *header, saccade::Whole());
  return 0;
}
