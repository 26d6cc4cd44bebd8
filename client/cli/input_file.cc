#include "client/cli/picture_file.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace saccade::client {
namespace {

absl::StatusOr<std::string> ReadAll(std::istream& in, int64_t max_bytes) {
  std::string bytes;
  char chunk[1 << 16];
  while (in.read(chunk, sizeof(chunk)), in.gcount() > 0) {
    bytes.append(chunk, in.gcount());
    if (static_cast<int64_t>(bytes.size()) > max_bytes) {
      return absl::ResourceExhaustedError(absl::StrCat("more than the ", max_bytes,
                                                       " bytes that a message may have (--max-message-bytes, "
                                                       "and the daemon's own limit)"));
    }
  }
  if (in.bad()) return absl::DataLossError("could not be read to its end");
  if (bytes.empty()) return absl::InvalidArgumentError("is empty; expected a JPEG, PNG, WebP or BMP picture");
  return bytes;
}

}  // namespace

absl::StatusOr<std::string> ReadPicture(const std::string& path, std::istream& in, int64_t max_bytes) {
  if (path == "-") return ReadAll(in, max_bytes);
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    return absl::FailedPreconditionError("is a directory; expected a picture file");
  }
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file) return absl::NotFoundError(absl::StrCat("cannot be opened: ", std::strerror(errno)));
  return ReadAll(file, max_bytes);
}

}  // namespace saccade::client
