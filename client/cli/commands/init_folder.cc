#include "client/cli/commands/init_folder.h"

#include <system_error>

#include "absl/strings/str_cat.h"
#include "client/cli/output/output_file.h"

namespace saccade::client {
namespace {

namespace fs = std::filesystem;

// A daemon usually runs as another user than the one whose file it is.
constexpr fs::perms kReadable =
    fs::perms::owner_read | fs::perms::owner_write | fs::perms::group_read | fs::perms::others_read;

absl::Status Copy(const fs::path& from, const fs::path& to) {
  std::error_code error;
  fs::create_directories(to.parent_path(), error);
  if (!error) fs::copy_file(from, to, error);
  if (!error) fs::permissions(to, kReadable, error);
  if (!error) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(from.string(), " cannot be copied to ", to.string(), ": ", error.message()));
}

}  // namespace

absl::Status WriteFolder(const fs::path& folder, const ModelFolder& made, const std::string& weights,
                         const std::string& labels) {
  const fs::path version = folder / "1";
  if (absl::Status copied = Copy(weights, version / made.file_name); !copied.ok()) return copied;
  for (const auto& [from, to] : made.more_files) {
    if (absl::Status copied = Copy(from, version / to); !copied.ok()) return copied;
  }
  if (!labels.empty()) {
    if (absl::Status written = WriteFile((folder / "labels.txt").string(), {labels}); !written.ok())
      return written;
  }
  return WriteFile((folder / "config.pbtxt").string(), {made.config});
}

}  // namespace saccade::client
