// What is computed while a model warms up.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/repository/model_settings.h"

namespace saccade::server {

// A batch of more is not warmed up with: what it allocates would stay, for a batch that may never come.
inline constexpr int64_t kMostWarmUpBytes = int64_t{256} << 20;

// A pass that took longer is close enough to the next one to learn from: what the first one does besides is
// less.
inline constexpr absl::Duration kLongWarmUpPass = absl::Milliseconds(500);

// One item of `input`, so many bytes as a request would have them; of texts the file decides how many, up to
// kMostWarmUpBytes. Random are floats from 0 to 1 (of half the bits from 0.5 on), integers and truths of 0 or
// 1, always the same; texts stay empty.
absl::StatusOr<std::string> MakeWarmUpItem(const WarmupInput& input, int64_t bytes);

}  // namespace saccade::server
