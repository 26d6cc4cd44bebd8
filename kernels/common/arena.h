// Scratch memory of one call. An Arena without memory computes the size needed; a second one with the same
// Take() calls then hands out the arrays.
#pragma once

#include <cstddef>
#include <cstdint>

namespace saccade::kernels {

constexpr int64_t RoundUp(int64_t value, int64_t step) { return (value + step - 1) / step * step; }
constexpr int64_t DivideUp(int64_t value, int64_t by) { return (value + by - 1) / by; }

// Places arrays one after the other, each at a multiple of 64 bytes from `base`. If `base` is null, Take()
// returns null and only bytes() is meaningful.
class Arena {
 public:
  explicit Arena(std::byte* base) : base_(base) {}

  template <typename Element>
  Element* Take(int64_t count) {
    const size_t at = bytes_;
    bytes_ += static_cast<size_t>(RoundUp(count * static_cast<int64_t>(sizeof(Element)), 64));
    return base_ == nullptr ? nullptr : reinterpret_cast<Element*>(base_ + at);
  }

  size_t bytes() const { return bytes_; }

 private:
  std::byte* base_;
  size_t bytes_ = 0;
};

}  // namespace saccade::kernels
