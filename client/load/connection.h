// Connections of generated loads.
#pragma once

#include <grpcpp/channel.h>

#include <memory>
#include <string>

namespace saccade::client {

// Returns a channel with a connection of its own, as a separate process would have, without TLS and without a
// limit on the size of responses. Does not connect; with an invalid address the first call fails.
std::shared_ptr<grpc::Channel> OpenConnection(const std::string& url);

}  // namespace saccade::client
