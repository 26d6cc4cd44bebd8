// Flags for TLS and tokens.
#pragma once

#include <string>

#include "server/security/certificate.h"

namespace CLI {
class App;
}

namespace saccade::server {

struct SecurityFlags {
  // Empty: no TLS.
  CertificateFiles tls;
  // Empty: no tokens are needed.
  std::string token_file;
  // Serve metrics without TLS and without tokens, whatever the other ports require.
  bool plain_metrics = false;
  // Allow non-local addresses even without authentication.
  bool insecure = false;
};

// `flags` must outlive parsing.
void AddSecurityFlags(CLI::App& app, SecurityFlags* flags);

}  // namespace saccade::server
