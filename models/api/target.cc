#include "models/api/target.h"

#include <array>
#include <utility>

#include "models/api/error.h"
#include "models/api/text.h"

namespace saccade::models {
namespace {

constexpr std::array<std::pair<Precision, const char*>, 4> kNames = {{{Precision::kFloat32, "fp32"},
                                                                      {Precision::kTf32, "tf32"},
                                                                      {Precision::kBFloat16, "bf16"},
                                                                      {Precision::kFloat16, "fp16"}}};

}  // namespace

const char* PrecisionName(Precision precision) {
  for (const auto& [known, name] : kNames) {
    if (known == precision) return name;
  }
  return "";
}

Precision ParsePrecision(const std::string& name) {
  for (const auto& [precision, known] : kNames) {
    if (name == known) return precision;
  }
  throw LoadError("the option precision is " + Quote(name) + ", expected fp32, tf32, bf16 or fp16");
}

Precision PrecisionOf(const Options& options) {
  const auto found = options.find("precision");
  return found == options.end() ? Precision::kFloat32 : ParsePrecision(found->second);
}

Options WithoutPrecision(Options options) {
  options.erase("precision");
  return options;
}

}  // namespace saccade::models
