// What gRPC's port asks of those who connect and of every call.
#pragma once

#include <grpcpp/security/server_credentials.h>

#include <memory>

#include "server/security/certificates.h"
#include "server/security/tokens.h"

namespace saccade::server {

// TLS with whatever certificate is in force when a client connects, if there are `certificates`; a token for
// every call that is not open, if there are `tokens`. Both must outlive the credentials, and these the
// server.
std::shared_ptr<grpc::ServerCredentials> GrpcCredentials(const Certificates* certificates,
                                                         const Tokens* tokens);

}  // namespace saccade::server
