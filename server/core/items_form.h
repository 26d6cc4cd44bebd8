// How items of which each picture has a different number, detections say, share a tensor.
#pragma once

namespace saccade::server {

enum class ItemsForm {
  // [n, most, ...]: filled up with zeros to the picture that has the most, beside how many each has.
  kPadded,
  // [all, ...]: one after the other, beside where each picture's begin, and the end: n + 1 numbers.
  kFlat,
};

}  // namespace saccade::server
