#include "server/quantize/bounded_file.h"

#include <filesystem>
#include <fstream>
#include <system_error>

#include "absl/strings/str_cat.h"

namespace saccade::server {

absl::StatusOr<std::string> ReadBoundedFile(const std::string& path, int64_t max_bytes) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error))
    return absl::InvalidArgumentError(absl::StrCat(path, ": is missing or no file"));
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  const std::streamoff bytes = file.tellg();
  if (!file || bytes < 0) return absl::InvalidArgumentError(absl::StrCat(path, ": cannot be read"));
  if (bytes > max_bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": has ", bytes, " bytes; expected at most ", max_bytes));
  }
  std::string content(static_cast<size_t>(bytes), '\0');
  file.seekg(0);
  file.read(content.data(), bytes);
  if (file.gcount() != bytes) return absl::InvalidArgumentError(absl::StrCat(path, ": cannot be read"));
  return content;
}

}  // namespace saccade::server
