#include "server/catalog/measured_kinds_file.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "server/catalog/state_file.h"
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

}  // namespace

MeasuredKindsFile::MeasuredKindsFile(std::string folder, MeasuredOn on)
    : folder_(std::move(folder)),
      on_(std::move(on)),
      path_(folder_.empty() ? "" : absl::StrCat(folder_, "/", FileNameOf(on_.machine))) {}

std::map<std::string, MeasuredKind> MeasuredKindsFile::Load() const {
  if (folder_.empty()) return {};
  const auto text = ReadStateFile(path_, kMaxKindsBytes);
  if (absl::IsNotFound(text.status())) return {};
  auto kinds = text.ok() ? ReadKinds(*text, on_) : text.status();
  if (kinds.ok()) return *std::move(kinds);
  Log(LogLevel::kWarning, "remembered measurements ignored",
      {{"file", path_}, {"reason", std::string(kinds.status().message())}});
  return {};
}

void MeasuredKindsFile::Save(std::map<std::string, MeasuredKind> kinds) {
  if (folder_.empty()) return;
  // Merge measurements that other daemons have written to the file since it was read.
  if (const auto text = ReadStateFile(path_, kMaxKindsBytes); text.ok()) {
    if (auto found = ReadKinds(*text, on_); found.ok()) kinds.merge(*found);
  }
  const absl::Status saved = ReplaceStateFile(folder_, path_, WriteKinds(on_, kinds));
  if (saved.ok() || std::exchange(failed_, true)) return;
  // A container's file system is often read-only, and all that is lost is time.
  Log(LogLevel::kInfo, "measurements not remembered",
      {{"reason", std::string(saved.message())},
       {"expected",
        "--state-folder names a folder that the daemon may write; without it, each start measures "
        "the models again"}});
}

}  // namespace saccade::server
