#include "server/catalog/state_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace saccade::server {
namespace {

// Closes the descriptor.
class Descriptor {
 public:
  explicit Descriptor(int descriptor) : descriptor_(descriptor) {}
  ~Descriptor() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return descriptor_; }

 private:
  const int descriptor_;
};

// Closes `descriptor`, which is that of the file `path`.
absl::Status WriteFile(int descriptor, const std::string& path, const std::string& text) {
  const Descriptor file(descriptor);
  for (size_t size = 0; size < text.size();) {
    const ssize_t put = write(file.get(), text.data() + size, text.size() - size);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return absl::ErrnoToStatus(errno, absl::StrCat("cannot write ", path));
    size += static_cast<size_t>(put);
  }
  if (fsync(file.get()) != 0) return absl::ErrnoToStatus(errno, absl::StrCat("cannot write ", path));
  return absl::OkStatus();
}

// Removes what daemons left that were killed while they wrote `path`. Others may be writing now, so it
// removes only old files.
void RemoveOldPartials(const std::string& folder, const std::string& path) {
  const std::string prefix = absl::StrCat(std::filesystem::path(path).filename().string(), ".partial-");
  std::error_code error;
  std::filesystem::directory_iterator entry(folder, error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    if (!absl::StartsWith(entry->path().filename().string(), prefix)) continue;
    std::error_code unknown;
    const auto written = entry->last_write_time(unknown);
    if (unknown || std::filesystem::file_time_type::clock::now() - written < std::chrono::hours(1)) continue;
    std::filesystem::remove(entry->path(), unknown);
  }
}

}  // namespace

absl::StatusOr<std::string> ReadStateFile(const std::string& path, size_t max_bytes) {
  // Without O_NONBLOCK, opening a FIFO would wait for a writer.
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0) return absl::ErrnoToStatus(errno, "cannot be opened");
  struct stat stat{};
  if (fstat(file.get(), &stat) != 0) return absl::ErrnoToStatus(errno, "cannot be examined");
  if (!S_ISREG(stat.st_mode)) return absl::InvalidArgumentError("expected a regular file");
  // One byte more than allowed shows that there are too many.
  std::string text(std::min<size_t>(max_bytes + 1, static_cast<size_t>(stat.st_size)), '\0');
  size_t size = 0;
  while (size < text.size()) {
    const ssize_t got = read(file.get(), text.data() + size, text.size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return absl::ErrnoToStatus(errno, "cannot be read");
    if (got == 0) break;
    size += static_cast<size_t>(got);
  }
  text.resize(size);
  return text;
}

absl::Status ReplaceStateFile(const std::string& folder, const std::string& path, const std::string& text) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return absl::ErrnoToStatus(error.value(), absl::StrCat("cannot create ", folder));
  RemoveOldPartials(folder, path);
  // Daemons in several containers may share the folder and have the same process ID.
  std::string partial = absl::StrCat(path, ".partial-XXXXXX");
  const int made = mkostemp(partial.data(), O_CLOEXEC);
  if (made < 0) return absl::ErrnoToStatus(errno, absl::StrCat("cannot create ", partial));
  absl::Status written = WriteFile(made, partial, text);
  if (written.ok() && rename(partial.c_str(), path.c_str()) != 0)
    written = absl::ErrnoToStatus(errno, absl::StrCat("cannot rename ", partial));
  if (!written.ok()) unlink(partial.c_str());
  return written;
}

}  // namespace saccade::server
