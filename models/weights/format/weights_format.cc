#include "models/weights/format/weights_format.h"

#include <algorithm>
#include <array>
#include <limits>
#include <string_view>

#include "models/weights/format/safetensors.h"
#include "models/weights/format/state_dict.h"

namespace saccade::models {

namespace {

// The length of a safetensors file up to the end of its header, or the largest number for all other files.
size_t IndexBytes(Bytes beginning) {
  constexpr size_t kLengthBytes = 8;
  constexpr size_t kAll = std::numeric_limits<size_t>::max();
  if (beginning.size() <= kLengthBytes || beginning[kLengthBytes] != std::byte{'{'}) return kAll;
  uint64_t length = 0;
  for (size_t i = 0; i < kLengthBytes; ++i) length |= std::to_integer<uint64_t>(beginning[i]) << (8 * i);
  return length <= static_cast<uint64_t>(kMaxHeaderBytes) ? kLengthBytes + length : kAll;
}

}  // namespace

std::shared_ptr<const FileContents> ReadWeightsIndex(const std::string& path) {
  return FileContents::Read(path, kMaxWeightsFileBytes, &IndexBytes);
}

bool IsStateDict(Bytes beginning) {
  const std::string_view start(reinterpret_cast<const char*>(beginning.data()), beginning.size());
  const bool archive = start.starts_with(std::string_view("PK\x03\x04", 4));
  // Safetensors' header may have a length that begins like a pickle: 640 bytes, for example. It follows the
  // eight bytes of the length, and begins with a brace. Pickles of protocols 3 to 5 are refused by
  // ParseStateDict(), in words about pickles.
  const bool pickle = start.size() > 1 && start[0] == '\x80' && start[1] >= 2 && start[1] <= 5 &&
                      !(start.size() > 8 && start[8] == '{');
  return archive || pickle;
}

std::vector<TensorEntry> ParseWeights(Bytes file) {
  return IsStateDict(file) ? ParseStateDict(file) : ParseSafetensors(file);
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
