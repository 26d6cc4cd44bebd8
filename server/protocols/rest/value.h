// A JSON value that is neither an object nor an array.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "server/inference/parameters.h"

namespace saccade::server {

// An integer is int64_t if it is negative, otherwise uint64_t.
using RestValue = std::variant<bool, int64_t, uint64_t, double, std::string>;
// In the order of the text.
using RestParameters = std::vector<std::pair<std::string, RestValue>>;

// A string refers to `value`.
inline Parameter ToParameter(const RestValue& value) {
  return std::visit(
      [](const auto& held) -> Parameter {
        if constexpr (std::is_same_v<std::decay_t<decltype(held)>, std::string>) {
          return std::string_view(held);
        } else {
          return held;
        }
      },
      value);
}

}  // namespace saccade::server
