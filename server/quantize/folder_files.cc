#include "server/quantize/folder_files.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"

namespace saccade::server {
namespace {

absl::StatusOr<std::vector<std::string>> EntriesIn(const std::string& folder, bool folders) {
  std::error_code error;
  std::filesystem::directory_iterator entries(folder, error);
  std::vector<std::string> found;
  for (; !error && entries != std::filesystem::directory_iterator(); entries.increment(error)) {
    std::error_code ignored;
    const bool wanted = folders ? entries->is_directory(ignored) : entries->is_regular_file(ignored);
    if (!wanted || entries->path().filename().string().front() == '.') continue;
    if (found.size() == kMaxFolderFiles) {
      return absl::InvalidArgumentError(absl::StrCat(folder, ": has more than ", kMaxFolderFiles,
                                                     folders ? " folders" : " files",
                                                     "; expected fewer, a part of them is enough"));
    }
    found.push_back(entries->path().string());
  }
  if (error) return absl::InvalidArgumentError(absl::StrCat(folder, ": cannot be read: ", error.message()));
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace

absl::StatusOr<std::vector<std::string>> FilesIn(const std::string& folder) {
  return EntriesIn(folder, /*folders=*/false);
}

absl::StatusOr<std::vector<std::string>> FoldersIn(const std::string& folder) {
  return EntriesIn(folder, /*folders=*/true);
}

std::string FileName(const std::string& path) { return std::filesystem::path(path).filename().string(); }

std::string FileStem(const std::string& path) { return std::filesystem::path(path).stem().string(); }

std::string LeftOutLine(absl::string_view what, size_t count, absl::string_view first) {
  return absl::StrCat("saccade quantize: left out: ", what, ": ", count, "; the first: ", first, "\n");
}

}  // namespace saccade::server
