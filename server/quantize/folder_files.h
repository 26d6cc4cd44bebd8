// Lists folders of pictures and labels.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace saccade::server {

// More files than any folder of pictures that somebody chose by hand has.
inline constexpr size_t kMaxFolderFiles = 1'000'000;

// Returns the paths of a folder's regular files, without hidden ones, in the order of their names.
// INVALID_ARGUMENT if the folder cannot be read or has more than kMaxFolderFiles of them.
absl::StatusOr<std::vector<std::string>> FilesIn(const std::string& folder);
// The same for its sub-folders.
absl::StatusOr<std::vector<std::string>> FoldersIn(const std::string& folder);

// Returns a path's last part, and the same without the extension: "a.png" and "a" of "masks/a.png".
std::string FileName(const std::string& path);
std::string FileStem(const std::string& path);

// Returns a line about files that are left out, of which `first` is the first one's name or error.
std::string LeftOutLine(absl::string_view what, size_t count, absl::string_view first);

}  // namespace saccade::server
