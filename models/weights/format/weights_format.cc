#include "models/weights/format/weights_format.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "models/weights/format/safetensors.h"
#include "models/weights/format/state_dict.h"

namespace saccade::models {

std::vector<TensorEntry> ParseWeights(Bytes file) {
  const std::string_view start(reinterpret_cast<const char*>(file.data()), file.size());
  const bool archive = start.starts_with(std::string_view("PK\x03\x04", 4));
  // Safetensors' header may have a length that begins like a pickle: 640 bytes, for example. It follows the
  // eight bytes of the length, and begins with a brace.
  const bool pickle = start.starts_with("\x80\x02") && !(start.size() > 8 && start[8] == '{');
  if (archive || pickle) return ParseStateDict(file);
  return ParseSafetensors(file);
}

bool IsBatchCounter(std::string_view name) { return name.ends_with(".num_batches_tracked"); }

std::string WrappersPrefix(const std::vector<TensorEntry>& entries) {
  constexpr std::array<std::string_view, 3> kWrappers = {"module.", "model.", "_orig_mod."};
  std::string prefix;
  if (entries.empty()) return prefix;
  const auto all_begin_with = [&](const std::string& beginning) {
    return std::all_of(entries.begin(), entries.end(),
                       [&](const TensorEntry& entry) { return entry.name.starts_with(beginning); });
  };
  for (bool found = true; found;) {
    found = false;
    for (const std::string_view wrapper : kWrappers) {
      const std::string longer = prefix + std::string(wrapper);
      if (!all_begin_with(longer)) continue;
      prefix = longer;
      found = true;
    }
  }
  return prefix;
}

}  // namespace saccade::models
