// Options of the identity: the duration of its passes, and the items that make them fail.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "models/api/options.h"

namespace saccade::models {

struct IdentityOptions {
  // A pass takes delay_ms, plus delay_ms_per_item for each of its items. Both are 0..60000.
  double delay_ms = 0;
  double delay_ms_per_item = 0;
  bool busy = false;  // delay=sleep|busy: whether the delay occupies a core, as computing does
  // Failure drills. A pass with an item whose first value is exactly fail_at throws; with hang_at, it takes
  // hang_seconds longer and does not report progress. fail_at=none or a number, hang_at too;
  // hang_seconds=0..86400. If hang_file names a file, the pass continues as soon as that does not exist.
  std::optional<float> fail_at;
  std::optional<float> hang_at;
  // A pass over more items than this throws an out-of-memory error. no_room_above=0..1000, 0 for never.
  int64_t no_room_above = 0;
  // The first thread that computes an item whose first value is exactly lose_device_at loses its device: this
  // pass and its later ones throw the error that CUDA reports for a lost GPU. Other threads' passes do not,
  // as if each had a GPU of its own. lose_device_at=none or a number.
  std::optional<float> lose_device_at;
  // While a file of this name exists, all passes of one thread throw: of the first that computes then. The
  // others' succeed, as if one of several instances were broken. Empty for never.
  std::string broken_thread_file;
  double hang_seconds = 60;
  std::string hang_file;
  int64_t max_voxels = int64_t{128} << 20;  // max_voxels=1..2^31: larger volumes are rejected

  std::chrono::nanoseconds Delay(int64_t items) const;
  std::chrono::nanoseconds MaxHang() const;
  // Names of the failure drills that are on.
  std::vector<std::string> Drills() const;
};

// Throws a LoadError that lists the legal names or values.
IdentityOptions ParseIdentityOptions(const std::string& architecture, const Options& options);

// Returns all options with their values, as text.
Options AsText(const IdentityOptions& options);

}  // namespace saccade::models
