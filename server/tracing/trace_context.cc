#include "server/tracing/trace_context.h"

#include <algorithm>
#include <random>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace saccade::server {
namespace {

// Format: "00-", 32 digits, "-", 16 digits, "-", 2 digits.
constexpr size_t kTraceAt = 3;
constexpr size_t kSpanAt = 36;
constexpr size_t kFlagsAt = 53;
constexpr size_t kLength = 55;
constexpr uint64_t kSampled = 1;
constexpr uint64_t kForbiddenVersion = 0xff;

constexpr size_t kMaxStateBytes = 512;
constexpr size_t kMaxStateMembers = 32;
constexpr size_t kMaxKeyBytes = 256;
constexpr size_t kMaxTenantBytes = 241;
constexpr size_t kMaxSystemBytes = 14;
constexpr size_t kMaxValueBytes = 256;

// Upper-case digits are invalid here.
std::optional<uint64_t> ReadHex(absl::string_view digits) {
  uint64_t number = 0;
  for (const char digit : digits) {
    if (digit >= '0' && digit <= '9') {
      number = number << 4 | static_cast<uint64_t>(digit - '0');
    } else if (digit >= 'a' && digit <= 'f') {
      number = number << 4 | static_cast<uint64_t>(digit - 'a' + 10);
    } else {
      return std::nullopt;
    }
  }
  return number;
}

std::optional<SpanContext> ReadTraceparent(absl::string_view text) {
  if (text.size() < kLength || text[2] != '-' || text[kSpanAt - 1] != '-' || text[kFlagsAt - 1] != '-')
    return std::nullopt;
  const auto version = ReadHex(text.substr(0, 2));
  if (!version || *version == kForbiddenVersion) return std::nullopt;
  if (text.size() > kLength && (*version == 0 || text[kLength] != '-')) return std::nullopt;
  const auto high = ReadHex(text.substr(kTraceAt, 16));
  const auto low = ReadHex(text.substr(kTraceAt + 16, 16));
  const auto span = ReadHex(text.substr(kSpanAt, 16));
  const auto flags = ReadHex(text.substr(kFlagsAt, 2));
  if (!high || !low || !span || !flags) return std::nullopt;
  const TraceId trace{*high, *low};
  if (trace == TraceId() || *span == 0) return std::nullopt;
  return SpanContext{.trace = trace, .span = *span, .sampled = (*flags & kSampled) != 0};
}

bool IsLower(char c) { return c >= 'a' && c <= 'z'; }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }

bool IsKeyPart(absl::string_view part, size_t max, bool may_begin_with_digit) {
  const auto is_inside = [](char c) {
    return IsLower(c) || IsDigit(c) || c == '_' || c == '-' || c == '*' || c == '/';
  };
  return !part.empty() && part.size() <= max &&
         (IsLower(part[0]) || (may_begin_with_digit && IsDigit(part[0]))) &&
         std::all_of(part.begin(), part.end(), is_inside);
}

bool IsKey(absl::string_view key) {
  const size_t at = key.find('@');
  if (at == absl::string_view::npos) return IsKeyPart(key, kMaxKeyBytes, /*may_begin_with_digit=*/false);
  return IsKeyPart(key.substr(0, at), kMaxTenantBytes, /*may_begin_with_digit=*/true) &&
         IsKeyPart(key.substr(at + 1), kMaxSystemBytes, /*may_begin_with_digit=*/false);
}

bool IsValue(absl::string_view value) {
  const auto is_inside = [](char c) { return c >= ' ' && c <= '~' && c != ',' && c != '='; };
  return !value.empty() && value.size() <= kMaxValueBytes && value.back() != ' ' &&
         std::all_of(value.begin(), value.end(), is_inside);
}

// Empty if any member is invalid, because the rest would have another meaning.
std::string ReadTracestate(absl::Span<const absl::string_view> headers) {
  std::vector<absl::string_view> members;
  std::vector<absl::string_view> keys;
  size_t bytes = 0;
  for (const absl::string_view header : headers) {
    for (const absl::string_view part : absl::StrSplit(header, ',')) {
      const absl::string_view member = absl::StripAsciiWhitespace(part);
      // The specification allows empty members.
      if (member.empty()) continue;
      const size_t equals = member.find('=');
      if (equals == absl::string_view::npos) return "";
      const absl::string_view key = member.substr(0, equals);
      if (!IsKey(key) || !IsValue(member.substr(equals + 1))) return "";
      if (std::find(keys.begin(), keys.end(), key) != keys.end()) return "";
      bytes += member.size() + 1;
      if (members.size() == kMaxStateMembers || bytes > kMaxStateBytes + 1) return "";
      members.push_back(member);
      keys.push_back(key);
    }
  }
  return absl::StrJoin(members, ",");
}

uint64_t RandomNumber() {
  thread_local std::mt19937_64 generator = [] {
    std::random_device device;
    std::seed_seq seed{device(), device(), device(), device(), device(), device(), device(), device()};
    return std::mt19937_64(seed);
  }();
  return generator();
}

}  // namespace

std::optional<SpanContext> ReadTraceContext(absl::Span<const absl::string_view> traceparents,
                                            absl::Span<const absl::string_view> tracestates) {
  if (traceparents.size() != 1) return std::nullopt;
  auto context = ReadTraceparent(absl::StripAsciiWhitespace(traceparents[0]));
  if (context) context->state = ReadTracestate(tracestates);
  return context;
}

std::string ToBytes(TraceId id) { return ToBytes(id.high) + ToBytes(id.low); }

std::string ToBytes(SpanId id) {
  std::string bytes(sizeof(id), '\0');
  for (size_t i = 0; i < sizeof(id); ++i) bytes[i] = static_cast<char>(id >> (8 * (sizeof(id) - 1 - i)));
  return bytes;
}

TraceId NewTraceId() {
  TraceId id;
  while (id == TraceId()) id = {RandomNumber(), RandomNumber()};
  return id;
}

SpanId NewSpanId() {
  SpanId id = 0;
  while (id == 0) id = RandomNumber();
  return id;
}

}  // namespace saccade::server
