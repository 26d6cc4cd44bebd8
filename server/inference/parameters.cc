#include "server/inference/parameters.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <string>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "server/core/errors.h"

namespace saccade::server {
namespace {

constexpr uint64_t kMax = std::numeric_limits<int64_t>::max();

// nullopt if the value is not an integer. Negative integers become 0.
std::optional<uint64_t> IntegerOf(const Parameter& value) {
  if (const auto* number = std::get_if<uint64_t>(&value)) return *number;
  if (const auto* number = std::get_if<int64_t>(&value)) {
    return static_cast<uint64_t>(std::max<int64_t>(0, *number));
  }
  return std::nullopt;
}

std::string ParameterNamed(std::string_view name) { return absl::StrCat("parameter ", std::string(name)); }

absl::Status NotAnInteger(std::string_view name) {
  return Invalid(ParameterNamed(name), "expected an integer");
}

constexpr std::string_view kRegion = "shared_memory_region";
constexpr std::string_view kOffset = "shared_memory_offset";
constexpr std::string_view kByteSize = "shared_memory_byte_size";

bool IsNegative(const Parameter& value) {
  const auto* number = std::get_if<int64_t>(&value);
  return number != nullptr && *number < 0;
}

// Whether a parameter of sequences says, as in Triton, that the request belongs to none.
bool IsNone(const Parameter& value) {
  if (const auto* text = std::get_if<std::string_view>(&value)) return text->empty();
  if (const auto* flag = std::get_if<bool>(&value)) return !*flag;
  return IntegerOf(value) == 0U && !IsNegative(value);
}

SharedRange& Made(std::optional<SharedRange>& range) { return range ? *range : range.emplace(); }

}  // namespace

absl::Status ApplyParameter(std::string_view name, const Parameter& value, TensorCall& call) {
  if (name == "sequence_id" || name == "sequence_start" || name == "sequence_end") {
    if (IsNone(value)) return absl::OkStatus();
    return absl::UnimplementedError(absl::StrCat(
        "parameter ", std::string(name), ": sequences are not supported; send the request without it"));
  }
  if (name != "timeout" && name != "priority") return absl::OkStatus();
  const std::optional<uint64_t> number = IntegerOf(value);
  if (!number) return NotAnInteger(name);
  if (name == "timeout") {
    if (*number > 0) call.timeout = absl::Microseconds(static_cast<int64_t>(std::min(*number, kMax)));
    return absl::OkStatus();
  }
  // Triton's priorities count from 1, the highest, upwards; 0 is the default.
  constexpr uint64_t kLast = std::numeric_limits<int>::max();
  call.priority = -static_cast<int>(std::min(*number, kLast));
  return absl::OkStatus();
}

absl::Status ApplyParameter(std::string_view name, const Parameter& value, WantedOutput& output) {
  if (name != "classification") return ApplyParameter(name, value, output.shared);
  const std::optional<uint64_t> number = IntegerOf(value);
  if (!number) return NotAnInteger(name);
  output.classes = static_cast<int64_t>(std::min(*number, kMax));
  return absl::OkStatus();
}

absl::Status ApplyParameter(std::string_view name, const Parameter& value,
                            std::optional<SharedRange>& range) {
  if (name == kRegion) {
    const auto* region = std::get_if<std::string_view>(&value);
    if (region == nullptr || region->empty()) {
      return Invalid(ParameterNamed(name), "expected the name of a registered region");
    }
    Made(range).region = std::string(*region);
    return absl::OkStatus();
  }
  if (name != kOffset && name != kByteSize) return absl::OkStatus();
  const std::optional<uint64_t> number = IntegerOf(value);
  if (!number || IsNegative(value)) return Invalid(ParameterNamed(name), "expected an integer of 0 or more");
  (name == kOffset ? Made(range).offset : Made(range).size) = *number;
  return absl::OkStatus();
}

absl::Status CheckInferId(std::string_view id) {
  if (id.size() <= kMaxInferId) return absl::OkStatus();
  return Invalid("id", absl::StrCat("has ", id.size(), " bytes; expected at most ", kMaxInferId));
}

absl::Status CheckParameters(const std::optional<SharedRange>& range) {
  if (!range) return absl::OkStatus();
  if (range->region.empty()) {
    return Invalid(ParameterNamed(kRegion),
                   "is missing, but shared_memory_byte_size or shared_memory_offset is set");
  }
  if (range->size == 0) {
    return Invalid(ParameterNamed(kByteSize), "is missing or 0, but shared_memory_region is set");
  }
  return absl::OkStatus();
}

absl::Status CheckParameters(const WantedOutput& output) {
  if (output.shared && output.classes > 0) {
    return Invalid(absl::StrCat("output ", Shown(output.name)),
                   "has both shared_memory_region and classification; send only one of them");
  }
  return CheckParameters(output.shared);
}

absl::Status CheckNamedOnce(const std::vector<WantedOutput>& outputs) {
  // Its hash has a seed of its own in each process, so that nobody can choose names that collide.
  absl::flat_hash_set<std::string_view> names;
  for (const WantedOutput& output : outputs) {
    if (!names.insert(output.name).second)
      return Invalid("outputs", absl::StrCat(Shown(output.name), " is asked for more than once"));
  }
  return absl::OkStatus();
}

}  // namespace saccade::server
