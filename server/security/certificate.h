// A server's certificate with its key, and whose certificates clients have to show.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

// OpenSSL's, which stays out of this header.
struct ssl_ctx_st;

namespace saccade::server {

struct CertificateFiles {
  // PEM: the server's own certificate first, then those between it and its root.
  std::string certificate;
  std::string key;
  // PEM, one or several. Empty: clients show none.
  std::string client_ca;
};

// Immutable once it is read.
struct Certificate {
  ~Certificate();

  // The files' text, as gRPC wants it.
  std::string certificate;
  std::string key;
  std::string client_ca;
  // The same for OpenSSL, at least TLS 1.2.
  std::shared_ptr<ssl_ctx_st> context;
  absl::Time expires;
};

// Reads and checks all of it: that the key is the certificate's, and the certificate is in force at `now`. An
// error names the flag, the file, and what is wrong with it.
absl::StatusOr<std::shared_ptr<const Certificate>> ReadCertificate(const CertificateFiles& files,
                                                                   absl::Time now);

}  // namespace saccade::server
