// The items that are computed during warm-up.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/repository/model_settings.h"

namespace saccade::server {

// Larger batches are not used for warm-up: their allocations would remain even if no such batch ever arrives.
inline constexpr int64_t kMaxWarmUpBytes = int64_t{256} << 20;

// The time of a first pass is normally not learned, because it includes one-time work. If it took longer than
// this, that work is negligible.
inline constexpr absl::Duration kLongWarmUpPass = absl::Milliseconds(500);

// Makes one item of `input` of `bytes` bytes, encoded as in a request. For texts, the file determines the
// size, up to kMaxWarmUpBytes. Random data is the same on every run: floats in [0, 1) (FP16 and BF16 in
// [0.5, 1)), integers and booleans 0 or 1; texts stay empty.
absl::StatusOr<std::string> MakeWarmUpItem(const WarmupInput& input, int64_t bytes);

}  // namespace saccade::server
