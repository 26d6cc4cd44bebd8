#include "client/cli/overlay_path.h"

#include <filesystem>
#include <set>

#include "absl/strings/str_cat.h"

namespace saccade::client {

std::vector<std::string> OverlayPaths(const std::string& directory,
                                      const std::vector<std::string>& pictures) {
  std::vector<std::string> paths;
  std::set<std::string> taken;
  for (const std::string& picture : pictures) {
    const std::string stem = picture == "-" ? "stdin" : std::filesystem::path(picture).stem().string();
    std::string name = stem;
    for (int i = 2; !taken.insert(name).second; ++i) name = absl::StrCat(stem, "-", i);
    paths.push_back((std::filesystem::path(directory) / (name + ".overlay.png")).string());
  }
  return paths;
}

}  // namespace saccade::client
