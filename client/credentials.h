// From a client's options to what its channel and its calls carry.
#pragma once

#include <grpcpp/security/credentials.h>

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "client/client.h"
#include "client/target.h"

namespace saccade::client {

struct Credentials {
  std::shared_ptr<grpc::ChannelCredentials> channel;
  // The value of every call's `authorization`; empty if there is none.
  std::string authorization;
};

// INVALID_ARGUMENT, in words that name what was given, for what gRPC could not use, and for a token that
// others could read on the way.
absl::StatusOr<Credentials> MakeCredentials(const ClientOptions& options, const Target& target);

}  // namespace saccade::client
