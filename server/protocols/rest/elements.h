// Collects a tensor's elements from JSON in the tensor's memory layout.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "server/core/byte_pieces.h"
#include "server/core/tensor.h"

namespace saccade::server {

// An integer is int64_t if it is negative, otherwise uint64_t. nullptr is JSON's null.
using RestElement = std::variant<std::nullptr_t, bool, int64_t, uint64_t, double, absl::string_view>;

// Accepts "data" as a flat array of all elements, or as arrays nested in any way: like Triton, takes the
// elements in the order in which they are written.
class RestElements {
 public:
  // `max` is the maximum size of all elements in bytes. `reserved` bytes are allocated at once.
  RestElements(DataType type, const std::vector<int64_t>& shape, size_t max, size_t reserved = 0);

  void StartArray() { ++open_; }
  void EndArray();
  // INVALID_ARGUMENT says which element is wrong and why, or that there are more than the shape says.
  absl::Status Add(const RestElement& element);

  // True if the outermost array has ended.
  bool done() const { return ended_; }

  int64_t count() const { return count_; }

  // The elements in the tensor's layout. REQUIRES: done().
  BytePieces Take();

 private:
  absl::Status Keep(const RestElement& element);
  absl::Status AddNumber(const RestElement& element);
  absl::Status AddText(absl::string_view text);
  absl::Status Wrong(absl::string_view problem) const;

  const DataType type_;
  const size_t max_;
  // What the shape says.
  const int64_t expected_;
  std::string bytes_;
  int64_t count_ = 0;
  // The number of open arrays.
  size_t open_ = 0;
  bool ended_ = false;
};

}  // namespace saccade::server
