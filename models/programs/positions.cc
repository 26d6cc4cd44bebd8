#include "models/programs/positions.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <string_view>

#include "models/api/error.h"

namespace saccade::models {
namespace {

using Names = std::vector<std::string>;

std::optional<size_t> AmongKnown(const std::string& name, const Names& known) {
  const auto found = std::find(known.begin(), known.end(), name);
  if (found == known.end()) return std::nullopt;
  return static_cast<size_t>(found - known.begin());
}

// Returns 3 for "INPUT__3".
std::optional<size_t> NumberOf(const std::string& name) {
  const size_t at = name.rfind("__");
  if (at == std::string::npos) return std::nullopt;
  const std::string_view digits = std::string_view(name).substr(at + 2);
  size_t number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (digits.empty() || error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return number;
}

// Returns the positions of all tensors, or nullopt if `find` fails for any.
template <typename Find>
std::optional<std::vector<size_t>> ForAll(const std::vector<TensorSignature>& tensors, const Find& find) {
  std::vector<size_t> positions;
  for (const TensorSignature& tensor : tensors) {
    const std::optional<size_t> position = find(tensor.name);
    if (!position) return std::nullopt;
    positions.push_back(*position);
  }
  return positions;
}

void Check(const std::vector<TensorSignature>& tensors, const std::vector<size_t>& positions, size_t count,
           const char* what) {
  std::map<size_t, std::string> taken;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const std::string& name = tensors[i].name;
    if (positions[i] >= count) {
      throw LoadError(std::string(what) + " '" + name + "' is number " + std::to_string(positions[i]) +
                      ", counted from 0, but the program has " + std::to_string(count));
    }
    const auto [other, first] = taken.emplace(positions[i], name);
    if (!first) {
      throw LoadError(std::string(what) + " '" + name + "' and '" + other->second + "' are both number " +
                      std::to_string(positions[i]));
    }
  }
}

}  // namespace

std::vector<size_t> PositionsOf(const std::vector<TensorSignature>& tensors, const Names& known, size_t count,
                                const char* what) {
  auto positions = ForAll(tensors, [&](const std::string& name) { return AmongKnown(name, known); });
  if (!positions) positions = ForAll(tensors, NumberOf);
  if (!positions) {
    size_t next = 0;
    positions = ForAll(tensors, [&next](const std::string&) { return std::optional(next++); });
  }
  Check(tensors, *positions, count, what);
  return *positions;
}

}  // namespace saccade::models
