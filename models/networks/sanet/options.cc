#include "models/networks/sanet/options.h"

#include <algorithm>
#include <cmath>
#include <sstream>

#include "models/networks/option_reader.h"

namespace saccade::models {

SanetOptions ParseSanetOptions(const Options& options) {
  OptionReader reader("sanet", options);
  SanetOptions parsed;
  parsed.attention = reader.Choice("attention", "sao", {"sao", "none"}) == "sao";
  parsed.learned = reader.Choice("similarity", "learned", {"learned", "ones"}) == "learned";
  parsed.global_term = reader.Choice("global_term", "true", {"true", "false"}) == "true";
  parsed.classes = reader.Integer("classes", parsed.classes, 1, 100'000);
  parsed.width = reader.Number("width", parsed.width, 0.1, 4);
  parsed.input_size = reader.Integer("input_size", parsed.input_size, 32, 1024);
  reader.RefuseOthers();
  return parsed;
}

Options AsText(const SanetOptions& options) {
  std::ostringstream width;
  width << options.width;
  return {{"attention", options.attention ? "sao" : "none"},
          {"similarity", options.learned ? "learned" : "ones"},
          {"global_term", options.global_term ? "true" : "false"},
          {"classes", std::to_string(options.classes)},
          {"width", width.str()},
          {"input_size", std::to_string(options.input_size)}};
}

int64_t Scaled(int64_t channels, double width) {
  const double eighths = std::floor(static_cast<double>(channels) * width / 8 + 0.5);
  return std::max<int64_t>(8, 8 * static_cast<int64_t>(eighths));
}

}  // namespace saccade::models
