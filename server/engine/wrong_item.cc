#include "server/engine/wrong_item.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/core/byte_pieces.h"
#include "server/core/wrong_values.h"
#include "server/engine/item_error.h"

namespace saccade::server {
namespace {

struct Found {
  int64_t at = 0;
  float value = 0;
};

// Returns the first value that is not finite.
std::optional<Found> FirstNotFinite(const BytePieces& pixels) {
  std::array<float, 4096> some;
  PieceReader reader(pixels);
  const size_t count = pixels.size() / sizeof(float);
  for (size_t begin = 0; begin < count; begin += some.size()) {
    const size_t size = std::min(some.size(), count - begin);
    reader.Read(size * sizeof(float), reinterpret_cast<char*>(some.data()));
    for (size_t i = 0; i < size; ++i) {
      if (!std::isfinite(some[i])) return Found{static_cast<int64_t>(begin + i), some[i]};
    }
  }
  return std::nullopt;
}

// The sides of the item's values as they were sent; empty for pictures, whose values the server has computed.
std::vector<int64_t> SidesOf(const Request& request, const models::ImageInput& input, const Item& item) {
  if (const auto* tensor = std::get_if<TensorInput>(&request.input))
    return {tensor->shape.begin() + 1, tensor->shape.end()};
  if (input.medium != models::Medium::kVolume) return {};
  return {item.placement.depth, item.placement.bucket.height, item.placement.bucket.width};
}

std::vector<int64_t> IndexOf(int64_t at, const std::vector<int64_t>& sides) {
  std::vector<int64_t> index(sides.size());
  for (size_t i = sides.size(); i-- > 0; at /= sides[i]) index[i] = at % sides[i];
  return index;
}

const char* NameOfValue(float value) {
  if (std::isnan(value)) return "NaN";
  return value > 0 ? "infinity" : "-infinity";
}

}  // namespace

absl::Status WrongItem(const Request& request, const models::ImageInput& input, const Item& item,
                       int64_t number, const models::Failure& failure) {
  const std::vector<int64_t> sides = SidesOf(request, input, item);
  const std::optional<Found> found = sides.empty() ? std::nullopt : FirstNotFinite(item.pixels);
  absl::Status wrong;
  if (!found) {
    wrong = AtItem(absl::InvalidArgumentError(failure.message), request, "picture", number);
  } else {
    const bool is_tensor = std::holds_alternative<TensorInput>(request.input);
    std::vector<int64_t> index = IndexOf(found->at, sides);
    if (is_tensor) index.insert(index.begin(), number);
    const std::string why =
        absl::StrCat("holds a value that is not finite (", NameOfValue(found->value), ") at element [",
                     absl::StrJoin(index, ","), "]; expected finite numbers");
    // A tensor's element says which item it is in.
    wrong = is_tensor ? absl::InvalidArgumentError(absl::StrCat(std::string(request.input_name), ": ", why))
                      : AtItem(absl::InvalidArgumentError(why), request, "volume", number);
  }
  SetWrongValues(wrong);
  return wrong;
}

}  // namespace saccade::server
