// How results with a variable number of items per picture, e.g. detections, are laid out in one tensor.
#pragma once

namespace saccade::server {

enum class ItemsForm {
  // [n, max, ...]: padded with zeros to the largest count, with a second tensor of the n counts.
  kPadded,
  // [total, ...]: concatenated, with a second tensor of n + 1 offsets (the start of each picture's items, and
  // the end).
  kFlat,
};

}  // namespace saccade::server
