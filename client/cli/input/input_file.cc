#include "client/cli/input/input_file.h"

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "absl/strings/str_cat.h"

namespace saccade::client {
namespace {

absl::StatusOr<std::string> ReadAll(std::istream& in, int64_t max_bytes, absl::string_view expected) {
  std::string bytes;
  char chunk[1 << 16];
  while (in.read(chunk, sizeof(chunk)), in.gcount() > 0) {
    bytes.append(chunk, in.gcount());
    if (static_cast<int64_t>(bytes.size()) > max_bytes) {
      return absl::ResourceExhaustedError(absl::StrCat("exceeds the ", max_bytes,
                                                       " bytes allowed in a message (--max-message-bytes, "
                                                       "and the daemon's own limit)"));
    }
  }
  if (in.bad()) return absl::DataLossError("could not be read to its end");
  if (bytes.empty()) return absl::InvalidArgumentError(absl::StrCat("is empty; expected ", expected));
  return bytes;
}

}  // namespace

absl::StatusOr<std::string> ReadInput(const std::string& path, std::istream& in, int64_t max_bytes,
                                      absl::string_view expected) {
  if (path == "-") return ReadAll(in, max_bytes, expected);
  std::ifstream file;
  const absl::Status status = OpenInput(path, expected, file);
  if (!status.ok()) return status;
  return ReadAll(file, max_bytes, expected);
}

absl::Status OpenInput(const std::string& path, absl::string_view expected, std::ifstream& file) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    return absl::FailedPreconditionError(absl::StrCat("is a directory; expected ", expected));
  }
  errno = 0;
  file.open(path, std::ios::binary);
  if (!file) return absl::NotFoundError(absl::StrCat("cannot be opened: ", std::strerror(errno)));
  return absl::OkStatus();
}

}  // namespace saccade::client
