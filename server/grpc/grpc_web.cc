#include "server/grpc/grpc_web.h"

#include <array>
#include <cstdint>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "server/grpc/message_prefix.h"

namespace saccade::server {
namespace {

constexpr char kTrailersFlag = static_cast<char>(0x80);

// The value of a symbol of base64; -1 for other characters.
int ValueOf(char symbol) {
  if (symbol >= 'A' && symbol <= 'Z') return symbol - 'A';
  if (symbol >= 'a' && symbol <= 'z') return symbol - 'a' + 26;
  if (symbol >= '0' && symbol <= '9') return symbol - '0' + 52;
  if (symbol == '+') return 62;
  if (symbol == '/') return 63;
  return -1;
}

}  // namespace

std::optional<GrpcForm> FormOf(absl::string_view content_type) {
  const absl::string_view type = absl::StripAsciiWhitespace(content_type.substr(0, content_type.find(';')));
  const struct {
    const char* type;
    GrpcForm form;
  } kForms[] = {{"application/grpc", GrpcForm::kGrpc},
                {"application/grpc-web", GrpcForm::kWeb},
                {"application/grpc-web-text", GrpcForm::kWebText}};
  for (const auto& known : kForms) {
    absl::string_view rest = type;
    if (absl::StartsWithIgnoreCase(rest, known.type)) {
      rest.remove_prefix(absl::string_view(known.type).size());
      if (rest.empty() || absl::EqualsIgnoreCase(rest, "+proto")) return known.form;
    }
  }
  return std::nullopt;
}

bool Base64Decoder::Decode(absl::string_view text, std::string& to) {
  to.reserve(to.size() + text.size() / 4 * 3 + 3);
  for (const char symbol : text) {
    const int value = ValueOf(symbol);
    const bool pads = symbol == '=';
    // Padding is the end of a group: at least two symbols before it, none after it.
    if (pads ? symbols_ < 2 : (value < 0 || padding_ > 0)) return false;
    bits_ = bits_ << 6 | static_cast<unsigned int>(pads ? 0 : value);
    if (pads) ++padding_;
    if (++symbols_ < 4) continue;
    for (int i = 0; i < 3 - padding_; ++i) to.push_back(static_cast<char>(bits_ >> (16 - 8 * i) & 0xFF));
    symbols_ = 0;
    padding_ = 0;
    bits_ = 0;
  }
  return true;
}

std::string TrailersMessage(const HttpHeaders& trailers) {
  std::string fields;
  for (const auto& [name, value] : trailers) absl::StrAppend(&fields, name, ": ", value, "\r\n");
  const auto prefix = MessagePrefix(kTrailersFlag, fields.size());
  return absl::StrCat(absl::string_view(prefix.data(), prefix.size()), fields);
}

}  // namespace saccade::server
