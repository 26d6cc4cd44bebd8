#include "server/catalog/kinds_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "server/logging/log.h"

namespace saccade::server {
namespace {

constexpr size_t kMaxNameBytes = 120;

// "AMD EPYC, 2 cores" -> "AMD-EPYC-2-cores".
std::string FileNameOf(const std::string& machine) {
  std::string name = machine;
  std::replace_if(name.begin(), name.end(), [](unsigned char c) { return !absl::ascii_isalnum(c); }, '-');
  const std::vector<std::string> words = absl::StrSplit(name, '-', absl::SkipEmpty());
  return absl::StrCat("measured-", absl::StrJoin(words, "-").substr(0, kMaxNameBytes), ".txt");
}

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

// NOT_FOUND if there is no such file.
absl::StatusOr<std::string> ReadFile(const std::string& path) {
  // Without O_NONBLOCK, opening a FIFO would wait for a writer.
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0) return absl::ErrnoToStatus(errno, "cannot be opened");
  struct stat stat{};
  if (fstat(file.get(), &stat) != 0) return absl::ErrnoToStatus(errno, "cannot be examined");
  if (!S_ISREG(stat.st_mode)) return absl::InvalidArgumentError("expected a regular file");
  // One byte more than allowed shows that there are too many.
  std::string text(std::min<size_t>(kMaxKindsBytes + 1, static_cast<size_t>(stat.st_size)), '\0');
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

absl::Status WriteFile(const std::string& path, const std::string& text) {
  const Descriptor file(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (file.get() < 0) return absl::ErrnoToStatus(errno, absl::StrCat("cannot create ", path));
  for (size_t size = 0; size < text.size();) {
    const ssize_t put = write(file.get(), text.data() + size, text.size() - size);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return absl::ErrnoToStatus(errno, absl::StrCat("cannot write ", path));
    size += static_cast<size_t>(put);
  }
  if (fsync(file.get()) != 0) return absl::ErrnoToStatus(errno, absl::StrCat("cannot write ", path));
  return absl::OkStatus();
}

absl::Status Replace(const std::string& folder, const std::string& path, const std::string& text) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return absl::ErrnoToStatus(error.value(), absl::StrCat("cannot create ", folder));
  const std::string partial = absl::StrCat(path, ".partial-", getpid());
  absl::Status written = WriteFile(partial, text);
  if (written.ok() && rename(partial.c_str(), path.c_str()) != 0)
    written = absl::ErrnoToStatus(errno, absl::StrCat("cannot rename ", partial));
  if (!written.ok()) unlink(partial.c_str());
  return written;
}

}  // namespace

KindsFile::KindsFile(std::string folder, MeasuredOn on)
    : folder_(std::move(folder)),
      on_(std::move(on)),
      path_(folder_.empty() ? "" : absl::StrCat(folder_, "/", FileNameOf(on_.machine))) {}

std::map<std::string, MeasuredKind> KindsFile::Load() const {
  if (folder_.empty()) return {};
  const auto text = ReadFile(path_);
  if (absl::IsNotFound(text.status())) return {};
  auto kinds = text.ok() ? ReadKinds(*text, on_) : text.status();
  if (kinds.ok()) return *std::move(kinds);
  Log(LogLevel::kWarning, "remembered measurements ignored",
      {{"file", path_}, {"reason", std::string(kinds.status().message())}});
  return {};
}

void KindsFile::Save(std::map<std::string, MeasuredKind> kinds) {
  if (folder_.empty()) return;
  // What another daemon has measured meanwhile.
  if (const auto text = ReadFile(path_); text.ok()) {
    if (auto found = ReadKinds(*text, on_); found.ok()) kinds.merge(*found);
  }
  const absl::Status saved = Replace(folder_, path_, WriteKinds(on_, kinds));
  if (saved.ok() || std::exchange(failed_, true)) return;
  // A container's file system is often read-only, and all that is lost is time.
  Log(LogLevel::kInfo, "measurements not remembered",
      {{"reason", std::string(saved.message())},
       {"expected",
        "--state-folder names a folder that the daemon may write; without it, each start measures "
        "the models again"}});
}

}  // namespace saccade::server
