#include "client/cli/output_file.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>

#include "absl/strings/str_cat.h"

namespace saccade::client {

std::vector<std::string> OutputStems(const std::string& directory, const std::vector<std::string>& pictures) {
  std::vector<std::string> stems;
  std::set<std::string> taken;
  for (const std::string& picture : pictures) {
    const std::string stem = picture == "-" ? "stdin" : std::filesystem::path(picture).stem().string();
    std::string name = stem;
    for (int i = 2; !taken.insert(name).second; ++i) name = absl::StrCat(stem, "-", i);
    stems.push_back((std::filesystem::path(directory) / name).string());
  }
  return stems;
}

absl::Status WriteFile(const std::string& path, absl::string_view bytes) {
  errno = 0;
  std::ofstream file(path, std::ios::binary);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  file.close();
  if (file) return absl::OkStatus();
  return absl::PermissionDeniedError(absl::StrCat("could not write ", path, ": ", std::strerror(errno)));
}

}  // namespace saccade::client
