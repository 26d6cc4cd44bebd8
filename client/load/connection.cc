#include "client/load/connection.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>

#include "client/cpp/target.h"

namespace saccade::client {

std::shared_ptr<grpc::Channel> OpenConnection(const std::string& url) {
  const auto target = ParseTarget(url);
  grpc::ChannelArguments arguments;
  // Channels to the same address share a connection otherwise.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetMaxReceiveMessageSize(-1);
  return grpc::CreateCustomChannel(target.ok() ? target->uri : url, grpc::InsecureChannelCredentials(),
                                   arguments);
}

}  // namespace saccade::client
