// Fuzzes a TIFF file read as a volume.
#include "server/decode/volume.h"

#include <vector>

#include "absl/types/span.h"
#include "tests/fuzz/costs.h"
#include "tests/fuzz/harness.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const saccade::fuzz::Costs costs(size);
  using saccade::fuzz::Check;
  constexpr int64_t kMaxVoxels = 1 << 16;
  const saccade::server::Picture volume =
      saccade::server::EncodedPicture{.data = {.owner = nullptr, .bytes = saccade::fuzz::AsText(data, size)}};
  const auto header = saccade::server::ReadVolumeHeader(volume, kMaxVoxels);
  if (!header.ok()) {
    Check(header.status().code() == absl::StatusCode::kInvalidArgument, "a bad TIFF is INVALID_ARGUMENT");
    Check(!header.status().message().empty(), "an error says what is wrong");
    return 0;
  }
  Check(header->voxels() >= 1 && header->voxels() <= kMaxVoxels, "a volume is no larger than may be");
  std::vector<float> voxels(static_cast<size_t>(header->voxels()));
  const absl::Status written = saccade::server::WriteVolume(volume, *header, absl::MakeSpan(voxels));
  Check(written.code() != absl::StatusCode::kInternal, "the header and the data agree");
  return 0;
}
