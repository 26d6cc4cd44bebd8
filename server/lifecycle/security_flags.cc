#include "server/lifecycle/security_flags.h"

#include <CLI/CLI.hpp>

namespace saccade::server {

void AddSecurityFlags(CLI::App& app, SecurityFlags* flags) {
  const auto file = [&app](const std::string& name, std::string& path, const std::string& help) {
    return app.add_option(name, path, help)->type_name("FILE");
  };
  CLI::Option* const certificate = file("--tls-cert", flags->tls.certificate,
                                        "Serve gRPC and HTTP over TLS: the certificate and its chain, PEM");
  CLI::Option* const key = file("--tls-key", flags->tls.key, "Its key, PEM");
  certificate->needs(key);
  key->needs(certificate);
  file("--tls-client-ca", flags->tls.client_ca,
       "Clients have to show a certificate that one of these has signed, PEM")
      ->needs(certificate);
  file("--token-file", flags->token_file,
       "Clients have to send a token of this file: a line is TOKEN SCOPE[,SCOPE], with predict, admin, "
       "metrics");
  app.add_flag("--plain-metrics", flags->plain_metrics, "Metrics without TLS, and for everybody");
  app.add_flag("--insecure", flags->insecure,
               "Listen beyond this machine even if nothing asks who calls, or tokens go over the network in "
               "the clear");
}

}  // namespace saccade::server
