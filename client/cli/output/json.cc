#include "client/cli/output/json.h"

#include <charconv>
#include <cmath>
#include <cstdlib>

#include "client/cli/output/names.h"

namespace saccade::client {

std::string Dump(const nlohmann::ordered_json& document) {
  return document.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

std::string DumpLine(const nlohmann::ordered_json& document) {
  return document.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

double Shortest(float value) {
  char text[64] = {};
  std::to_chars(text, text + sizeof(text) - 1, value);
  return std::strtod(text, nullptr);
}

nlohmann::ordered_json ToJson(const Promotion& promotion) {
  return {{"state", StateName(promotion.state)},
          {"rule", promotion.rule},
          {"shadow", promotion.shadow},
          {"replaces", promotion.replaces},
          {"reason", promotion.reason}};
}

double Milliseconds(absl::Duration duration) {
  return std::round(absl::ToDoubleMicroseconds(duration)) / 1000;
}

}  // namespace saccade::client
