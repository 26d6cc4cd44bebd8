// Converts a client's options into the credentials of its channel and of its calls.
#pragma once

#include <grpcpp/security/credentials.h>

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "client/cpp/client.h"
#include "client/cpp/target.h"

namespace saccade::client {

struct Credentials {
  std::shared_ptr<grpc::ChannelCredentials> channel;
  // Value of every call's `authorization` header; empty if there is no token.
  std::string authorization;
};

// INVALID_ARGUMENT, with a message that names the option, for credentials that gRPC could not use and for a
// token that would be sent in clear text to another machine.
absl::StatusOr<Credentials> MakeCredentials(const ClientOptions& options, const Target& target);

}  // namespace saccade::client
