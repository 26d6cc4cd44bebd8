#include "server/core/core_wait.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

namespace saccade::server {

absl::Duration TimeWithoutCore() {
  const int file = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
  if (file < 0) return absl::ZeroDuration();
  // "time on a core, time waiting for one, number of turns", in nanoseconds.
  std::array<char, 96> text = {};
  const ssize_t size = read(file, text.data(), text.size());
  close(file);
  if (size <= 0) return absl::ZeroDuration();
  const std::vector<absl::string_view> words =
      absl::StrSplit(absl::string_view(text.data(), static_cast<size_t>(size)), ' ');
  int64_t nanoseconds = 0;
  if (words.size() < 2 || !absl::SimpleAtoi(words[1], &nanoseconds)) return absl::ZeroDuration();
  return absl::Nanoseconds(nanoseconds);
}

}  // namespace saccade::server
