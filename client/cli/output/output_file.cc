#include "client/cli/output/output_file.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>

#include "absl/strings/str_cat.h"

namespace saccade::client {
namespace {

// Also handles folders: the stem of "frames/" is "frames", and "." is resolved first.
std::string StemOf(const std::string& picture) {
  if (picture == "-") return "stdin";
  std::filesystem::path path(picture);
  if (path.filename() == "." || path.filename() == "..") {
    std::error_code ignored;
    path = std::filesystem::absolute(path, ignored).lexically_normal();
  }
  if (!path.has_filename()) path = path.parent_path();
  return path.stem().string();
}

}  // namespace

std::vector<std::string> OutputStems(const std::string& directory, const std::vector<std::string>& pictures) {
  std::vector<std::string> stems;
  std::set<std::string> taken;
  for (const std::string& picture : pictures) {
    const std::string stem = StemOf(picture);
    std::string name = stem;
    for (int i = 2; !taken.insert(name).second; ++i) name = absl::StrCat(stem, "-", i);
    stems.push_back((std::filesystem::path(directory) / name).string());
  }
  return stems;
}

bool MakeOutputFolder(const std::string& folder, Console& console) {
  if (folder.empty()) return true;
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (!error) return true;
  Complain(console, absl::StrCat("--output ", folder, ": ", error.message(), "; expected a folder"));
  return false;
}

absl::Status WriteFile(const std::string& path, std::initializer_list<absl::string_view> parts) {
  errno = 0;
  std::ofstream file(path, std::ios::binary);
  for (const absl::string_view part : parts) {
    file.write(part.data(), static_cast<std::streamsize>(part.size()));
  }
  file.close();
  if (file) return absl::OkStatus();
  return absl::PermissionDeniedError(absl::StrCat("could not write ", path, ": ", std::strerror(errno)));
}

absl::Status WriteAs(const std::string& what, const std::string& path, absl::string_view bytes,
                     std::vector<Written>& written) {
  const absl::Status status = WriteFile(path, {bytes});
  if (status.ok()) written.push_back({what, path});
  return status;
}

}  // namespace saccade::client
