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
  // eight bytes of the length, and begins with a brace. Pickles of protocols 3 to 5 are refused by
  // ParseStateDict(), in words about pickles.
  const bool pickle = start.size() > 1 && start[0] == '\x80' && start[1] >= 2 && start[1] <= 5 &&
                      !(start.size() > 8 && start[8] == '{');
  if (archive || pickle) return ParseStateDict(file);
  return ParseSafetensors(file);
}

bool IsBatchCounter(std::string_view name) { return name.ends_with(".num_batches_tracked"); }

std::string WrappersPrefix(const std::vector<TensorEntry>& entries) {
  constexpr std::array<std::string_view, 3> kWrappers = {"module.", "model.", "_orig_mod."};
  if (entries.empty()) return "";
  // Length of the prefix that was found, which is not compared again: names may be long.
  size_t length = 0;
  const auto all_go_on_with = [&](std::string_view wrapper) {
    return std::all_of(entries.begin(), entries.end(), [&](const TensorEntry& entry) {
      return std::string_view(entry.name).substr(length).starts_with(wrapper);
    });
  };
  for (bool found = true; found;) {
    found = false;
    for (const std::string_view wrapper : kWrappers) {
      if (!all_go_on_with(wrapper)) continue;
      length += wrapper.size();
      found = true;
    }
  }
  return entries.front().name.substr(0, length);
}

}  // namespace saccade::models
