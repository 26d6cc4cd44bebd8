#include "server/grpc/metadata.h"

#include <cstdint>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace saccade::server {
namespace {

constexpr char kCut[] = "...";

bool IsPlain(char c) { return absl::ascii_isprint(static_cast<unsigned char>(c)) && c != '%'; }

// Whether a character of UTF-8 begins with this byte.
bool BeginsCharacter(char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }

// Number of bytes of `message` whose encoding takes at most `max` bytes, up to the beginning of a character.
size_t FittingBytes(absl::string_view message, size_t max) {
  size_t encoded = 0;
  size_t fitting = 0;
  for (size_t i = 0; i < message.size(); ++i) {
    if (BeginsCharacter(message[i])) fitting = i;
    encoded += IsPlain(message[i]) ? 1 : 3;
    if (encoded > max) return fitting;
  }
  return message.size();
}

void AppendEncoded(absl::string_view message, std::string& to) {
  constexpr char kDigits[] = "0123456789ABCDEF";
  for (const char c : message) {
    if (IsPlain(c)) {
      to.push_back(c);
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    to.push_back('%');
    to.push_back(kDigits[byte >> 4]);
    to.push_back(kDigits[byte & 15]);
  }
}

}  // namespace

std::string EncodeStatusMessage(absl::string_view message) {
  std::string encoded;
  const size_t all = FittingBytes(message, kMaxStatusMessageBytes);
  if (all == message.size()) {
    AppendEncoded(message, encoded);
    return encoded;
  }
  const size_t fitting = FittingBytes(message, kMaxStatusMessageBytes - (sizeof(kCut) - 1));
  AppendEncoded(message.substr(0, fitting), encoded);
  encoded += kCut;
  return encoded;
}

bool IsBinaryName(absl::string_view name) { return absl::EndsWith(name, "-bin"); }

std::string EncodeBinary(absl::string_view bytes) {
  std::string encoded = absl::Base64Escape(bytes);
  while (!encoded.empty() && encoded.back() == '=') encoded.pop_back();
  return encoded;
}

std::optional<std::string> DecodeBinary(absl::string_view text) {
  std::string bytes;
  if (!absl::Base64Unescape(text, &bytes)) return std::nullopt;
  return bytes;
}

std::optional<absl::Duration> ParseTimeout(absl::string_view text) {
  constexpr size_t kMaxDigits = 8;
  if (text.size() < 2 || text.size() > kMaxDigits + 1) return std::nullopt;
  int64_t number = 0;
  for (const char c : text.substr(0, text.size() - 1)) {
    if (!absl::ascii_isdigit(static_cast<unsigned char>(c))) return std::nullopt;
    number = number * 10 + (c - '0');
  }
  switch (text.back()) {
    case 'H':
      return absl::Hours(number);
    case 'M':
      return absl::Minutes(number);
    case 'S':
      return absl::Seconds(number);
    case 'm':
      return absl::Milliseconds(number);
    case 'u':
      return absl::Microseconds(number);
    case 'n':
      return absl::Nanoseconds(number);
    default:
      return std::nullopt;
  }
}

HttpHeaders EndFields(const CallEnd& end) {
  HttpHeaders fields;
  fields.reserve(3 + end.trailers.size());
  fields.emplace_back("grpc-status", absl::StrCat(static_cast<int>(end.status.code())));
  if (!end.status.message().empty()) {
    fields.emplace_back("grpc-message", EncodeStatusMessage(end.status.message()));
  }
  if (!end.details.empty()) fields.emplace_back("grpc-status-details-bin", EncodeBinary(end.details));
  for (const auto& [name, value] : end.trailers) {
    fields.emplace_back(name, IsBinaryName(name) ? EncodeBinary(value) : value);
  }
  return fields;
}

}  // namespace saccade::server
