// Who may talk to the daemon, and how.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "server/security/certificate.h"

namespace saccade::server {

struct SecurityFlags {
  // Empty: no TLS.
  CertificateFiles tls;
  // Empty: nobody needs a token.
  std::string token_file;
  // Metrics without TLS and for everybody, whatever the other ports ask.
  bool plain_metrics = false;
  // Listen beyond this machine even if nothing asks who calls.
  bool insecure = false;
};

// `flags` must outlive parsing.
void AddSecurityFlags(CLI::App& app, SecurityFlags* flags);

}  // namespace saccade::server
