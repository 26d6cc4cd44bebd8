#include "server/lifecycle/grpc_credentials.h"

#include <grpc/grpc.h>
#include <grpc/grpc_security.h>
#include <grpc/slice.h>

#include <optional>
#include <string>
#include <vector>

#include "server/security/scopes.h"

namespace saccade::server {
namespace {

absl::string_view TextOf(const grpc_slice& slice) {
  return {reinterpret_cast<const char*>(GRPC_SLICE_START_PTR(slice)), GRPC_SLICE_LENGTH(slice)};
}

// Checks a call before it reaches a service, including calls of unknown methods.
void CheckCall(void* tokens, grpc_auth_context* /*context*/, const grpc_metadata* metadata, size_t count,
               grpc_process_auth_metadata_done_cb done, void* call) {
  std::optional<Scope> needed;
  std::vector<absl::string_view> authorizations;
  std::vector<grpc_metadata> tokens_sent;
  for (size_t i = 0; i < count; ++i) {
    const absl::string_view key = TextOf(metadata[i].key);
    if (key == ":path") needed = ScopeOfCall(TextOf(metadata[i].value));
    if (key != "authorization") continue;
    authorizations.push_back(TextOf(metadata[i].value));
    tokens_sent.push_back(metadata[i]);
  }
  const absl::Status allowed = static_cast<const Tokens*>(tokens)->Check(authorizations, needed);
  const std::string message(allowed.message());
  // Consumed metadata is not passed on to the services. absl::StatusCode has the same values as gRPC's codes.
  done(call, tokens_sent.data(), tokens_sent.size(), nullptr, 0,
       static_cast<grpc_status_code>(allowed.code()), allowed.ok() ? nullptr : message.c_str());
}

// Uses gRPC's C API, because the C++ API supports neither reloading certificates nor token checks without
// TLS.
class Credentials final : public grpc::ServerCredentials {
 public:
  Credentials(const Certificates* certificates, const Tokens* tokens) : certificates_(certificates) {
    credentials_ = certificates == nullptr ? grpc_insecure_server_credentials_create() : Tls();
    if (tokens == nullptr) return;
    const grpc_auth_metadata_processor processor = {&CheckCall, [](void*) {},
                                                    const_cast<void*>(static_cast<const void*>(tokens))};
    grpc_server_credentials_set_auth_metadata_processor(credentials_, processor);
  }
  ~Credentials() override { grpc_server_credentials_release(credentials_); }

  Credentials(const Credentials&) = delete;
  Credentials& operator=(const Credentials&) = delete;

  void SetAuthMetadataProcessor(const std::shared_ptr<grpc::AuthMetadataProcessor>& /*processor*/) override {}

 private:
  int AddPortToServer(const std::string& address, grpc_server* server) override {
    return grpc_server_add_http2_port(server, address.c_str(), credentials_);
  }

  grpc_server_credentials* Tls() {
    const auto clients = certificates_->current()->client_ca.empty()
                             ? GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE
                             : GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY;
    return grpc_ssl_server_credentials_create_with_options(
        grpc_ssl_server_credentials_create_options_using_config_fetcher(clients, &Fetch, this));
  }

  // Called at every handshake, by one thread at a time.
  static grpc_ssl_certificate_config_reload_status Fetch(void* self,
                                                         grpc_ssl_server_certificate_config** config) {
    Credentials& credentials = *static_cast<Credentials*>(self);
    const auto current = credentials.certificates_->current();
    if (current == credentials.given_) return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_UNCHANGED;
    const grpc_ssl_pem_key_cert_pair pair = {current->key.c_str(), current->certificate.c_str()};
    // gRPC requires a root even if clients need no certificate; it is not used then.
    const std::string& roots = current->client_ca.empty() ? current->certificate : current->client_ca;
    *config = grpc_ssl_server_certificate_config_create(roots.c_str(), &pair, 1);
    credentials.given_ = current;
    return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_NEW;
  }

  const Certificates* const certificates_;
  std::shared_ptr<const Certificate> given_;
  grpc_server_credentials* credentials_ = nullptr;
};

}  // namespace

std::shared_ptr<grpc::ServerCredentials> GrpcCredentials(const Certificates* certificates,
                                                         const Tokens* tokens) {
  if (certificates == nullptr && tokens == nullptr) return grpc::InsecureServerCredentials();
  return std::make_shared<Credentials>(certificates, tokens);
}

}  // namespace saccade::server
