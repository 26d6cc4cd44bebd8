// Fuzzes a video file: its tables, and its frames.
#include "server/decode/video.h"

#include "tests/fuzz/costs.h"
#include "tests/fuzz/harness.h"

namespace saccade {
namespace {

// Small limits: large frames take long and find nothing else.
constexpr server::DecodeLimits kLimits = {.max_pixels = 1 << 14, .max_bytes = 1 << 20};
// A file may have more frames than bytes, if it names one several times.
constexpr int kMaxFrames = 8;

void Read(std::string_view bytes) {
  using fuzz::Check;
  auto video = server::Video::Open(bytes, kLimits);
  if (!video.ok()) {
    Check(video.status().code() == absl::StatusCode::kInvalidArgument, "a bad video is INVALID_ARGUMENT");
    Check(!video.status().message().empty(), "an error says what is wrong");
    return;
  }
  Check((*video)->frames_per_second() > 0, "the rate is positive");
  Check((*video)->claimed_frames() >= 0, "the number of frames is not negative");
  const models::Size claimed = (*video)->size();
  Check(claimed.height * claimed.width <= kLimits.max_pixels, "the file claims no larger frame than may be");
  for (int frame = 0; frame < kMaxFrames && (*video)->Skip(); ++frame) {
    const models::Size size = (*video)->size();
    Check(size.height >= 1 && size.width >= 1 && size.height * size.width <= kLimits.max_pixels,
          "a frame is no larger than may be");
    const auto picture = (*video)->Last();
    if (!picture.ok()) continue;
    Check(picture->pixels.width == size.width && picture->pixels.height == size.height,
          "a frame has the size that the video says");
  }
  const absl::Status end = (*video)->status();
  Check(end.ok() || end.code() == absl::StatusCode::kInvalidArgument, "a bad frame is INVALID_ARGUMENT");
}

}  // namespace
}  // namespace saccade

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const saccade::fuzz::Costs costs(size);
  saccade::Read(saccade::fuzz::AsText(data, size));
  return 0;
}
