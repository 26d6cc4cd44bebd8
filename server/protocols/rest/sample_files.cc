#include "server/protocols/rest/sample_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "models/api/text.h"

namespace saccade::server {
namespace {

constexpr std::pair<absl::string_view, absl::string_view> kTypes[] = {
    {".jpg", "image/jpeg"},      {".jpeg", "image/jpeg"},      {".png", "image/png"},
    {".webp", "image/webp"},     {".bmp", "image/bmp"},        {".tif", "image/tiff"},
    {".tiff", "image/tiff"},     {".mp4", "video/mp4"},        {".webm", "video/webm"},
    {".mov", "video/quicktime"}, {".mkv", "video/x-matroska"}, {".avi", "video/x-msvideo"}};

// Empty for other files.
absl::string_view TypeOf(const std::string& name) {
  const std::string lower = absl::AsciiStrToLower(name);
  for (const auto& [ending, type] : kTypes) {
    if (absl::EndsWith(lower, ending)) return type;
  }
  return "";
}

}  // namespace

std::vector<SampleFile> SampleFiles(absl::Span<const std::string> paths, int64_t max_bytes) {
  std::vector<SampleFile> samples;
  for (const std::string& path : paths) {
    std::string name = std::filesystem::path(path).filename().string();
    const absl::string_view type = TypeOf(name);
    // JSON could not name it otherwise.
    if (type.empty() || !models::IsUtf8(name)) continue;
    struct stat status{};
    if (lstat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) continue;
    if (status.st_size < 1 || status.st_size > max_bytes) continue;
    if (FindSample(samples, name).ok()) continue;
    samples.push_back({std::move(name), path, std::string(type), status.st_size});
  }
  return samples;
}

absl::StatusOr<SampleFile> FindSample(absl::Span<const SampleFile> samples, absl::string_view name) {
  const auto found = std::find_if(samples.begin(), samples.end(),
                                  [&](const SampleFile& sample) { return sample.name == name; });
  if (found != samples.end()) return *found;
  constexpr size_t kMaxShown = 100;
  return absl::NotFoundError(absl::StrCat("the model has no sample '",
                                          absl::CHexEscape(name.substr(0, kMaxShown)),
                                          "'; expected a name that the list of its samples has"));
}

absl::StatusOr<std::string> ReadSample(const SampleFile& sample) {
  // A FIFO in the file's place does not block.
  const int file = open(sample.path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (file < 0)
    return absl::UnavailableError(
        absl::StrCat("the sample cannot be opened: ", absl::ErrnoToStatus(errno, "").message()));
  const absl::Cleanup close_it = [file] { close(file); };
  struct stat status{};
  if (fstat(file, &status) != 0 || !S_ISREG(status.st_mode) || status.st_size != sample.bytes)
    return absl::UnavailableError("the sample has changed since it was listed; list the samples again");
  std::string bytes(static_cast<size_t>(sample.bytes), '\0');
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t got = read(file, bytes.data() + done, bytes.size() - done);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0)
      return absl::UnavailableError("the sample became shorter while it was read; list the samples again");
    done += static_cast<size_t>(got);
  }
  return bytes;
}

}  // namespace saccade::server
