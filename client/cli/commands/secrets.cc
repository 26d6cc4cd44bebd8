#include "client/cli/commands/secrets.h"

#include <cstdlib>
#include <filesystem>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "client/cli/input/input_file.h"

namespace saccade::client {
namespace {

// The complete list of a machine's authorities is a quarter of that size.
constexpr int64_t kMaxPemBytes = 1 << 20;
constexpr int64_t kMaxTokenFileBytes = 64 << 10;

absl::Status ReadFile(const char* flag, const std::string& path, int64_t max, const char* expected,
                      Console& console, std::string& to) {
  if (path.empty()) return absl::OkStatus();
  // "./-" prevents ReadInput from reading standard input, which is for pictures.
  auto bytes = ReadInput(path == "-" ? "./-" : path, console.in, max, expected);
  if (absl::IsResourceExhausted(bytes.status())) {
    return absl::InvalidArgumentError(
        absl::StrCat(flag, " ", path, " has more than ", max, " bytes; expected ", expected));
  }
  if (!bytes.ok()) {
    return absl::Status(bytes.status().code(), absl::StrCat(flag, " ", path, " ", bytes.status().message()));
  }
  to = *std::move(bytes);
  return absl::OkStatus();
}

void WarnOfReaders(const std::string& path, Console& console) {
  std::error_code error;
  const auto mode = std::filesystem::status(path, error).permissions();
  constexpr auto kOthers = std::filesystem::perms::group_read | std::filesystem::perms::others_read;
  if (error || (mode & kOthers) == std::filesystem::perms::none) return;
  Complain(console, absl::StrCat("--token-file ", path,
                                 " is readable by others than its owner; run chmod 600 ", path));
}

absl::Status ReadToken(const Connection& connection, Console& console, std::string& token) {
  if (!connection.token_file.empty()) {
    if (absl::Status read =
            ReadFile("--token-file", connection.token_file, kMaxTokenFileBytes, "a token", console, token);
        !read.ok()) {
      return read;
    }
    // Editors end files with a newline.
    token = std::string(absl::StripAsciiWhitespace(token));
    if (token.empty()) {
      return absl::InvalidArgumentError(absl::StrCat("--token-file ", connection.token_file,
                                                     " contains only white space; expected a token"));
    }
    WarnOfReaders(connection.token_file, console);
  } else if (const char* given = std::getenv("SACCADE_TOKEN")) {
    token = std::string(absl::StripAsciiWhitespace(given));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ReadSecrets(const Connection& connection, Console& console, ClientOptions& options) {
  TlsOptions tls;
  tls.server_name = connection.tls_name;
  absl::Status read = ReadFile("--tls-ca", connection.tls_authorities, kMaxPemBytes, "certificates in PEM",
                               console, tls.authorities);
  if (read.ok()) {
    read = ReadFile("--tls-cert", connection.tls_certificate, kMaxPemBytes, "a certificate in PEM", console,
                    tls.certificate);
  }
  if (read.ok())
    read = ReadFile("--tls-key", connection.tls_key, kMaxPemBytes, "a key in PEM", console, tls.key);
  if (read.ok()) read = ReadToken(connection, console, options.token);
  if (!read.ok()) return read;
  const bool wanted = connection.tls || !tls.authorities.empty() || !tls.certificate.empty() ||
                      !tls.key.empty() || !tls.server_name.empty();
  if (wanted) options.tls = std::move(tls);
  options.token_without_tls = connection.token_without_tls;
  return absl::OkStatus();
}

}  // namespace saccade::client
