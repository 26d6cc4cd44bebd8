// TLS and token checks of gRPC's port.
#pragma once

#include <grpcpp/security/server_credentials.h>

#include <memory>

#include "server/security/certificates.h"
#include "server/security/tokens.h"

namespace saccade::server {

// If `certificates` is not null, connections use TLS with the current certificate. If `tokens` is not null,
// every call except open ones needs a token. Both must outlive the credentials, which must outlive the
// server.
std::shared_ptr<grpc::ServerCredentials> GrpcCredentials(const Certificates* certificates,
                                                         const Tokens* tokens);

}  // namespace saccade::server
