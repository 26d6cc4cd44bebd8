#include "server/repository/files.h"

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <system_error>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "models/api/paths.h"
#include "models/api/text.h"

namespace saccade::server {
namespace fs = std::filesystem;
namespace {

absl::Status FileError(const std::error_code& error, const std::string& shown, absl::string_view doing) {
  return absl::ErrnoToStatus(error.value(), absl::StrCat(shown, ": cannot ", doing));
}

absl::Status LeadsOut(const std::string& shown) {
  return absl::InvalidArgumentError(absl::StrCat(shown,
                                                 ": a symbolic link leads out of the model repository; put "
                                                 "the file into the repository, or link to a file in it"));
}

}  // namespace

RepositoryPath::RepositoryPath(fs::path root, fs::path path, std::string shown)
    : root_(std::move(root)), path_(std::move(path)), shown_(std::move(shown)) {}

absl::StatusOr<RepositoryPath> RepositoryPath::Root(const std::string& repository) {
  std::error_code error;
  fs::path root = fs::canonical(repository, error);
  if (error) return FileError(error, absl::StrCat("model repository '", repository, "'"), "open it");
  if (!fs::is_directory(root, error)) {
    return absl::InvalidArgumentError(
        absl::StrCat("model repository '", repository,
                     "' is not a directory; expected a folder with one subfolder per model"));
  }
  return RepositoryPath(root, root, "");
}

RepositoryPath RepositoryPath::operator/(absl::string_view name) const {
  const std::string separator = shown_.empty() ? "" : "/";
  return RepositoryPath(root_, path_ / std::string(name),
                        absl::StrCat(shown_, separator, absl::CHexEscape(name)));
}

bool RepositoryPath::Exists() const {
  std::error_code error;
  return fs::symlink_status(path_, error).type() != fs::file_type::not_found;
}

absl::StatusOr<std::vector<DirectoryEntry>> RepositoryPath::List() const {
  if (auto resolved = Resolve(); !resolved.ok()) return resolved.status();
  std::error_code error;
  std::vector<DirectoryEntry> entries;
  for (fs::directory_iterator it(path_, error), end; !error && it != end; it.increment(error)) {
    std::string name = it->path().filename().string();
    if (name.front() == '.') continue;
    // A dangling link is reported when it is accessed by name.
    std::error_code ignored;
    const fs::file_status status = it->status(ignored);
    entries.push_back({std::move(name), fs::is_directory(status), fs::is_regular_file(status)});
  }
  if (error) return FileError(error, shown_.empty() ? "model repository" : shown_, "list it");
  std::sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  return entries;
}

absl::StatusOr<fs::path> RepositoryPath::Resolve() const {
  std::error_code error;
  fs::path resolved = fs::canonical(path_, error);
  if (error) return FileError(error, shown_, "open it");
  if (!models::IsInside(resolved, root_)) return LeadsOut(shown_);
  return resolved;
}

absl::StatusOr<fs::path> RepositoryPath::ResolveFolder() const {
  if (auto resolved = Resolve(); !resolved.ok()) return resolved.status();
  std::error_code error;
  const fs::path folder = fs::canonical(path_.parent_path(), error);
  if (error) return FileError(error, shown_, "open its folder");
  if (!models::IsInside(folder, root_)) return LeadsOut(shown_);
  return folder / path_.filename();
}

absl::StatusOr<std::string> RepositoryPath::ReadText(size_t max_bytes) const {
  const auto resolved = Resolve();
  if (!resolved.ok()) return resolved.status();
  std::error_code error;
  // Reading a FIFO or a device could block or never end.
  if (!fs::is_regular_file(*resolved, error)) {
    return absl::InvalidArgumentError(absl::StrCat(shown_, ": expected a regular file"));
  }
  std::ifstream file(*resolved, std::ios::binary);
  if (!file) return absl::ErrnoToStatus(errno, absl::StrCat(shown_, ": cannot open it"));
  std::string text(max_bytes + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (file.bad()) return absl::ErrnoToStatus(errno, absl::StrCat(shown_, ": cannot read it"));
  text.resize(static_cast<size_t>(file.gcount()));
  if (text.size() > max_bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat(shown_, ": is larger than the maximum of ", max_bytes, " bytes"));
  }
  // NUL is a UTF-8 character, but not one of a text file.
  if (!models::IsUtf8(text) || text.find('\0') != std::string::npos) {
    return absl::InvalidArgumentError(absl::StrCat(shown_, ": is not UTF-8 text; save it as UTF-8"));
  }
  return text;
}

absl::Status CheckInside(const std::string& repository, const std::string& path) {
  const auto root = RepositoryPath::Root(repository);
  if (!root.ok()) return root.status();
  std::error_code error;
  const fs::path resolved = fs::canonical(path, error);
  if (error) return absl::OkStatus();
  const auto folder = root->Resolve();
  if (!folder.ok()) return folder.status();
  return models::IsInside(resolved, *folder) ? absl::OkStatus() : LeadsOut(path);
}

}  // namespace saccade::server
