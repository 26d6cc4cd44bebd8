#include "server/quantize/mask_file.h"

#include "absl/strings/str_cat.h"
#include "server/quantize/truth_png.h"

namespace saccade::server {

absl::StatusOr<std::vector<uint8_t>> ReadMaskFile(const std::string& path, int64_t height, int64_t width,
                                                  int64_t classes) {
  const auto read = ReadTruthPng(path, height, width);
  if (!read.ok()) return read.status();
  std::vector<uint8_t> mask;
  mask.reserve(read->values.size());
  for (const uint16_t value : read->values) {
    if (value >= classes && value != kIgnoredClass) {
      const auto at = static_cast<int64_t>(mask.size());
      return absl::InvalidArgumentError(
          absl::StrCat(path, ": has the class ", value, " at column ", at % width, ", row ", at / width,
                       "; the model has ", classes, " classes; expected a number from 0 to ", classes - 1,
                       ", or ", kIgnoredClass, " for a pixel that does not count"));
    }
    mask.push_back(static_cast<uint8_t>(value));
  }
  return mask;
}

}  // namespace saccade::server
