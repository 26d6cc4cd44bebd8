#include "client/cli/output/pfm.h"

#include <bit>

#include "absl/strings/str_cat.h"

namespace saccade::client {

static_assert(std::endian::native == std::endian::little, "PFM's -1.0 stands for little-endian");

std::string ToPfm(int width, int height, const std::vector<float>& values) {
  std::string file = absl::StrCat("Pf\n", width, " ", height, "\n-1.0\n");
  const size_t row_bytes = static_cast<size_t>(width) * sizeof(float);
  file.reserve(file.size() + row_bytes * height);
  for (int y = height - 1; y >= 0; --y) {
    file.append(reinterpret_cast<const char*>(values.data() + static_cast<size_t>(y) * width), row_bytes);
  }
  return file;
}

}  // namespace saccade::client
