// Properties that both weight formats guarantee for an accepted file.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "models/api/error.h"
#include "models/api/text.h"
#include "models/weights/format/tensor_entry.h"
#include "tests/fuzz/harness.h"

namespace saccade::fuzz {

inline models::Bytes AsBytes(const uint8_t* data, size_t size) {
  return std::as_bytes(std::span(data, size));
}

// Checks that every element of `entry` lies within `file`.
inline void CheckWithin(const models::TensorEntry& entry, models::Bytes file) {
  Check(entry.shape.size() == entry.strides.size(), "there are as many strides as sides");
  const auto begin = static_cast<uint64_t>(entry.data - file.data());
  Check(begin <= file.size(), "a tensor begins within the file");
  for (size_t i = 0; i < entry.shape.size(); ++i) {
    Check(entry.shape[i] >= 0 && entry.strides[i] >= 0, "no side and no stride is negative");
    if (entry.shape[i] == 0) return;
  }
  // Index of the last element, counted from the tensor's beginning.
  uint64_t last = 0;
  bool fits = true;
  for (size_t i = 0; i < entry.shape.size(); ++i) {
    uint64_t steps = 0;
    fits = fits && !__builtin_mul_overflow(entry.shape[i] - 1, entry.strides[i], &steps) &&
           !__builtin_add_overflow(last, steps, &last);
  }
  const uint64_t room = (file.size() - begin) / static_cast<uint64_t>(models::Info(entry.type).size);
  Check(fits && last < room, "a tensor ends within the file");
}

// `parse` is the format's reader. It must return valid entries or throw a LoadError with a readable message.
template <typename Parse>
void ReadWeights(models::Bytes file, const Parse& parse) {
  try {
    for (const models::TensorEntry& entry : parse(file)) CheckWithin(entry, file);
  } catch (const models::LoadError& error) {
    Check(*error.what() != '\0' && models::IsUtf8(error.what()), "an error is readable text");
  }
}

}  // namespace saccade::fuzz
