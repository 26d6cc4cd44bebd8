#include "client/cpp/credentials.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "client/cpp/pem.h"

namespace saccade::client {
namespace {

// Servers reject headers that are much larger.
constexpr size_t kMaxTokenBytes = 4096;

absl::Status CheckTls(const TlsOptions& tls) {
  if (!tls.authorities.empty()) {
    if (absl::Status read = CheckCertificates(tls.authorities, "the list of authorities"); !read.ok())
      return read;
  }
  if (tls.certificate.empty() && tls.key.empty()) return absl::OkStatus();
  return CheckIdentity(tls.certificate, tls.key);
}

absl::Status CheckToken(const ClientOptions& options, const Target& target) {
  const std::string& token = options.token;
  if (token.size() > kMaxTokenBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("the token has ", token.size(), " bytes; expected ", kMaxTokenBytes, " at most"));
  }
  const bool fits = std::all_of(token.begin(), token.end(),
                                [](char c) { return absl::ascii_isgraph(static_cast<unsigned char>(c)); });
  // The message does not contain the token, because it is a secret.
  if (!fits)
    return absl::InvalidArgumentError(
        "the token has a space or a non-printable character; expected visible ASCII characters only");
  if (!token.empty() && !options.tls && !target.local && !options.token_without_tls) {
    return absl::InvalidArgumentError(
        absl::StrCat("the token would go to ", options.url,
                     " in clear text; use TLS (--tls), or token_without_tls "
                     "(--token-without-tls) if the network itself is encrypted"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Credentials> MakeCredentials(const ClientOptions& options, const Target& target) {
  if (absl::Status token = CheckToken(options, target); !token.ok()) return token;
  Credentials credentials;
  if (!options.token.empty()) credentials.authorization = absl::StrCat("Bearer ", options.token);
  if (!options.tls) {
    credentials.channel = grpc::InsecureChannelCredentials();
    return credentials;
  }
  if (absl::Status tls = CheckTls(*options.tls); !tls.ok()) return tls;
  grpc::SslCredentialsOptions ssl;
  ssl.pem_root_certs = options.tls->authorities;
  ssl.pem_cert_chain = options.tls->certificate;
  ssl.pem_private_key = options.tls->key;
  credentials.channel = grpc::SslCredentials(ssl);
  return credentials;
}

}  // namespace saccade::client
