// A server's certificate with its key, and the CAs whose client certificates it accepts.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

// OpenSSL's SSL_CTX, declared here to keep OpenSSL out of this header.
struct ssl_ctx_st;

namespace saccade::server {

struct CertificateFiles {
  // PEM: the server's own certificate first, then the intermediate certificates.
  std::string certificate;
  std::string key;
  // PEM with one or several CA certificates. Empty: clients need no certificate.
  std::string client_ca;
};

// Immutable after ReadCertificate.
struct Certificate {
  ~Certificate();

  // The contents of the files.
  std::string certificate;
  std::string key;
  std::string client_ca;
  // The same for OpenSSL, with TLS 1.2 or later. By ALPN, it agrees on "h2" if the client offers it, else on
  // "http/1.1"; on no protocol, without an error, if the client offers neither.
  std::shared_ptr<ssl_ctx_st> context;
  absl::Time expires;
};

// Reads the files and checks that the key belongs to the certificate and that the certificate is valid at
// `now`. An error states the flag, the file and the problem.
absl::StatusOr<std::shared_ptr<const Certificate>> ReadCertificate(const CertificateFiles& files,
                                                                   absl::Time now);

}  // namespace saccade::server
