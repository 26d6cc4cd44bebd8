// A tensor's elements as they come in JSON, one after the other, to be put where a tensor has them.
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

// A number keeps its sign and size; nullptr is JSON's null.
using RestElement = std::variant<std::nullptr_t, bool, int64_t, uint64_t, double, absl::string_view>;

// Takes "data": a flat array of all elements, or arrays in arrays as the shape says.
class RestElements {
 public:
  // `most` bounds the bytes of all elements.
  RestElements(DataType type, std::vector<int64_t> shape, size_t most)
      : type_(type), shape_(std::move(shape)), most_(most) {}

  // INVALID_ARGUMENT says which element it is that does not belong, and why.
  absl::Status StartArray();
  absl::Status EndArray();
  absl::Status Add(const RestElement& element);

  // Whether the outermost array has ended.
  bool done() const { return ended_; }

  int64_t count() const { return count_; }

  // As the tensor has them. REQUIRES: done().
  BytePieces Take();

 private:
  absl::Status AddNumber(const RestElement& element);
  absl::Status AddText(absl::string_view text);
  absl::Status Wrong(absl::string_view problem) const;

  const DataType type_;
  const std::vector<int64_t> shape_;
  const size_t most_;
  std::string bytes_;
  int64_t count_ = 0;
  // How many entries each open array has, the outermost first.
  std::vector<int64_t> open_;
  // How many arrays are around an element; 0 before the first one, or the first array that ends without any.
  size_t depth_ = 0;
  bool ended_ = false;
};

}  // namespace saccade::server
