// The options of the identity: how long its passes take, and what makes them fail.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "models/options.h"

namespace saccade::models {

struct IdentityOptions {
  // A pass takes delay_ms and delay_ms_per_item for each of its items. delay_ms=0..60000, and the other too.
  double delay_ms = 0;
  double delay_ms_per_item = 0;
  bool busy = false;  // delay=sleep|busy: whether that costs a core, as computing does
  // Drills: a pass with an item whose first value is exactly this throws, or takes hang_seconds more without
  // telling of any progress. fail_at=none or a number, hang_at too; hang_seconds=0..86400.
  std::optional<float> fail_at;
  std::optional<float> hang_at;
  // A pass over more items asks the allocator for more than there is. no_room_above=0..1000, 0 for never.
  int64_t no_room_above = 0;
  // As fail_at, with what CUDA reports of a GPU that is lost. lose_device_at=none or a number.
  std::optional<float> lose_device_at;
  double hang_seconds = 60;
  int64_t most_voxels = int64_t{128} << 20;  // most_voxels=1..2^31: larger volumes are refused

  std::chrono::nanoseconds Delay(int64_t items) const;
  std::chrono::nanoseconds Hang() const;
};

// Throws LoadError that lists the legal names or values.
IdentityOptions ParseIdentityOptions(const std::string& architecture, const Options& options);

// All options with their values, as text.
Options AsText(const IdentityOptions& options);

}  // namespace saccade::models
