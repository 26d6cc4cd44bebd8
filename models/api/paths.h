// Where paths lie.
#pragma once

#include <filesystem>

namespace saccade::models {

// Whether `path` is `folder` or below it. REQUIRES: both are canonical, as links are not looked at.
bool IsInside(const std::filesystem::path& path, const std::filesystem::path& folder);

}  // namespace saccade::models
