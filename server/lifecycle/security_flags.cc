#include "server/lifecycle/security_flags.h"

#include <CLI/CLI.hpp>

namespace saccade::server {

void AddSecurityFlags(CLI::App& app, SecurityFlags* flags) {
  const auto file = [&app](const std::string& name, std::string& path, const std::string& help) {
    return app.add_option(name, path, help)->type_name("FILE");
  };
  CLI::Option* const certificate =
      file("--tls-cert", flags->tls.certificate,
           "Serve gRPC and HTTP over TLS, with this certificate and its chain (PEM)");
  CLI::Option* const key = file("--tls-key", flags->tls.key, "Private key of --tls-cert (PEM)");
  certificate->needs(key);
  key->needs(certificate);
  file("--tls-client-ca", flags->tls.client_ca,
       "Require client certificates signed by one of these authorities (PEM)")
      ->needs(certificate);
  file("--token-file", flags->token_file,
       "Require a token from this file; a line is TOKEN SCOPE[,SCOPE] [rate=N] [inflight=N], with the scopes "
       "predict, admin, metrics");
  app.add_flag("--plain-metrics", flags->plain_metrics, "Serve metrics without TLS and without tokens");
  app.add_flag(
      "--insecure", flags->insecure,
      "Listen on non-local addresses even without authentication, or if tokens are sent over the network in "
      "plain text");
}

}  // namespace saccade::server
