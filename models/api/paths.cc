#include "models/api/paths.h"

#include <algorithm>

namespace saccade::models {

bool IsInside(const std::filesystem::path& path, const std::filesystem::path& folder) {
  return std::mismatch(folder.begin(), folder.end(), path.begin(), path.end()).first == folder.end();
}

}  // namespace saccade::models
