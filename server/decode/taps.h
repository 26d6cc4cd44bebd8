// The filter's weights for one side of a scaled picture.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "server/decode/resample.h"

namespace saccade::server {

// The filter's weights for each output sample. A window covers `count` source samples from `first`; its
// weights start at index `weights`.
struct Taps {
  struct Window {
    int64_t first = 0;
    int64_t count = 0;
    size_t weights = 0;
  };
  std::vector<Window> windows;
  std::vector<float> weights;
};

// The taps of a side of `source` samples. Throws only std::bad_alloc.
Taps MakeTaps(const Axis& axis, int64_t source);

// The bytes that MakeTaps() allocates. Takes time for each output sample, not for each source sample.
int64_t TapsBytes(const Axis& axis, int64_t source);

}  // namespace saccade::server
