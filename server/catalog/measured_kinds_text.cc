#include "server/catalog/measured_kinds_text.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "server/catalog/text_lines.h"

namespace saccade::server {
namespace {

constexpr char kFirstLine[] = "saccade measurements 2";
// Bounds of what can have been measured.
constexpr int64_t kMaxThreads = 1024;
constexpr int64_t kMaxBytes = int64_t{1} << 50;
constexpr int64_t kMaxSize = int64_t{1} << 20;
constexpr int64_t kMaxNanoseconds = int64_t{3600} * 1'000'000'000;
// Maximum length of a precision's name, and of the reason why it was chosen.
constexpr size_t kMaxPrecisionBytes = 16;
constexpr size_t kMaxReasonBytes = 4096;
constexpr int64_t kMaxUse = int64_t{1} << 60;

// Whether the texts about the precision are within their bounds.
bool IsShort(const MeasuredKind& kind) {
  return kind.precision.size() <= kMaxPrecisionBytes && kind.precision_reason.size() <= kMaxReasonBytes;
}

// Reads a kind's lines after the one with its name.
absl::Status ReadKind(TextLines& lines, MeasuredKind* kind) {
  absl::string_view value;
  int64_t threads = 0;
  if (!lines.TakeNumber("threads", 1, kMaxThreads, &threads)) return Damaged(lines.number(), "threads N");
  kind->threads = static_cast<int>(threads);
  int64_t instances = 0;
  if (!lines.TakeNumber("instances", 1, kMaxThreads, &instances))
    return Damaged(lines.number(), "instances N");
  kind->instances = static_cast<int>(instances);
  if (!lines.TakeNumber("bytes", 0, kMaxBytes, &kind->bytes)) return Damaged(lines.number(), "bytes N");
  if (!lines.TakeNumber("use", 0, kMaxUse, &kind->last_use)) return Damaged(lines.number(), "use N");
  if (lines.Take("precision", &value)) {
    const std::pair<absl::string_view, absl::string_view> words =
        absl::StrSplit(value, absl::MaxSplits(' ', 1));
    kind->precision = std::string(words.first);
    if (kind->precision.empty() || !absl::CUnescape(words.second, &kind->precision_reason) || !IsShort(*kind))
      return Damaged(lines.number() - 1, "precision NAME REASON");
  }
  while (lines.Take("pass", &value)) {
    const std::vector<absl::string_view> words = absl::StrSplit(value, ' ');
    MeasuredKind::Pass pass;
    int64_t nanoseconds = 0;
    if (kind->passes.size() >= kMaxKindPasses || words.size() != 3 ||
        !absl::SimpleAtoi(words[0], &pass.bucket) || !IsWithin(words[1], 1, kMaxSize, &pass.size) ||
        !IsWithin(words[2], 1, kMaxNanoseconds, &nanoseconds))
      return Damaged(lines.number() - 1, "pass BUCKET SIZE NANOSECONDS");
    pass.took = absl::Nanoseconds(nanoseconds);
    kind->passes.push_back(pass);
  }
  return absl::OkStatus();
}

// Whether ReadKinds() would read it.
bool CanBeWritten(const std::string& name, const MeasuredKind& kind) {
  return name.size() <= kMaxKindBytes && kind.passes.size() <= kMaxKindPasses && IsShort(kind) &&
         std::all_of(kind.passes.begin(), kind.passes.end(), [](const MeasuredKind::Pass& pass) {
           return pass.took > absl::ZeroDuration() && pass.took <= absl::Nanoseconds(kMaxNanoseconds);
         });
}

using Kind = std::pair<const std::string, MeasuredKind>;

// Those that can be written and were used last, at most kMaxKinds.
std::vector<const Kind*> LatestFirst(const std::map<std::string, MeasuredKind>& kinds) {
  std::vector<const Kind*> latest;
  for (const Kind& kind : kinds) {
    if (CanBeWritten(kind.first, kind.second)) latest.push_back(&kind);
  }
  std::stable_sort(latest.begin(), latest.end(),
                   [](const Kind* a, const Kind* b) { return a->second.last_use > b->second.last_use; });
  if (latest.size() > kMaxKinds) latest.resize(kMaxKinds);
  return latest;
}

}  // namespace

std::string WriteKinds(const MeasuredOn& on, const std::map<std::string, MeasuredKind>& kinds) {
  std::string text = absl::StrCat(kFirstLine, "\nmachine ", on.machine, "\nbuild ", on.build, "\n");
  size_t written = 0;
  for (const Kind* const latest : LatestFirst(kinds)) {
    const auto& [name, kind] = *latest;
    std::string lines = absl::StrCat("kind ", absl::CEscape(name), "\nthreads ", kind.threads, "\ninstances ",
                                     kind.instances, "\nbytes ", kind.bytes, "\nuse ", kind.last_use, "\n");
    if (!kind.precision.empty()) {
      absl::StrAppend(&lines, "precision ", kind.precision, " ", absl::CEscape(kind.precision_reason), "\n");
    }
    for (const MeasuredKind::Pass& pass : kind.passes) {
      absl::StrAppend(&lines, "pass ", pass.bucket, " ", pass.size, " ", absl::ToInt64Nanoseconds(pass.took),
                      "\n");
    }
    // The last line fits as well.
    if (text.size() + lines.size() + 32 > kMaxKindsBytes) break;
    text += lines;
    ++written;
  }
  absl::StrAppend(&text, "end ", written, "\n");
  return text;
}

absl::StatusOr<std::map<std::string, MeasuredKind>> ReadKinds(absl::string_view text, const MeasuredOn& on) {
  if (text.size() > kMaxKindsBytes)
    return absl::InvalidArgumentError(absl::StrCat("expected at most ", kMaxKindsBytes, " bytes"));
  TextLines lines(text);
  if (!lines.TakeLine(kFirstLine)) return Damaged(lines.number(), kFirstLine);
  absl::string_view value;
  if (!lines.Take("machine", &value)) return Damaged(lines.number(), "machine NAME");
  if (value != on.machine)
    return absl::FailedPreconditionError(
        absl::StrCat("was measured on '", absl::CHexEscape(value), "', this machine is '", on.machine, "'"));
  if (!lines.Take("build", &value)) return Damaged(lines.number(), "build NAME");
  if (value != on.build)
    return absl::FailedPreconditionError(absl::StrCat("was measured by the build '", absl::CHexEscape(value),
                                                      "', this one is '", on.build, "'"));
  std::map<std::string, MeasuredKind> kinds;
  while (lines.Take("kind", &value)) {
    std::string name;
    // A byte is written as at most four characters.
    if (value.size() > 4 * kMaxKindBytes || !absl::CUnescape(value, &name) || name.empty() ||
        name.size() > kMaxKindBytes)
      return Damaged(lines.number() - 1, "kind NAME");
    if (kinds.size() == kMaxKinds)
      return Damaged(lines.number() - 1, absl::StrCat("at most ", kMaxKinds, " kinds"));
    MeasuredKind kind;
    if (absl::Status read = ReadKind(lines, &kind); !read.ok()) return read;
    if (!kinds.emplace(std::move(name), std::move(kind)).second)
      return Damaged(lines.number() - 1, "each kind once");
  }
  // A file that was cut off has another number, or none.
  const auto size = static_cast<int64_t>(kinds.size());
  int64_t number = 0;
  if (!lines.TakeNumber("end", size, size, &number))
    return Damaged(lines.number(), absl::StrCat("end ", kinds.size()));
  return kinds;
}

}  // namespace saccade::server
