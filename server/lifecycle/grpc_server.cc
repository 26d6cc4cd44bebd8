#include "server/lifecycle/grpc_server.h"

#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/server_builder.h>

#include <chrono>

#include "absl/strings/str_cat.h"
#include "grpc/health/v1/health.pb.h"

namespace saccade::server {
namespace {

// Without a limit, a client may open any number of streams on a connection.
constexpr int kMaxStreamsPerConnection = 256;
// Time to complete the TLS and HTTP/2 handshakes; gRPC's default is two minutes.
constexpr int kHandshakeMs = 10'000;

void BoundConnections(const GrpcServer::Options& options, grpc::ServerBuilder& builder) {
  builder.SetMaxReceiveMessageSize(static_cast<int>(options.max_message_bytes));
  builder.SetMaxSendMessageSize(static_cast<int>(options.max_message_bytes));
  std::map<std::string, int> arguments = options.arguments;
  arguments.insert({
      {GRPC_ARG_MAX_CONCURRENT_STREAMS, kMaxStreamsPerConnection},
      {GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, kHandshakeMs},
      // Otherwise two daemons could share a port, each getting half of the requests.
      {GRPC_ARG_ALLOW_REUSEPORT, 0},
      // Clients behind a load balancer that drops idle connections need pings more often than gRPC's default
      // allows.
      {GRPC_ARG_KEEPALIVE_TIME_MS, 60'000},
      {GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 20'000},
      {GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 10'000},
  });
  for (const auto& [name, value] : arguments) builder.AddChannelArgument(name, value);
}

}  // namespace

absl::StatusOr<std::unique_ptr<GrpcServer>> GrpcServer::Start(const Options& options,
                                                              const std::vector<grpc::Service*>& services) {
  grpc::EnableDefaultHealthCheckService(true);
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  // Links the descriptors of the health messages, which gRPC's own health service lacks, for reflection.
  grpc::health::v1::HealthCheckRequest::descriptor();
  grpc::ServerBuilder builder;
  BoundConnections(options, builder);
  int port = 0;
  const std::string address = absl::StrCat(options.host, ":", options.port);
  builder.AddListeningPort(address, options.credentials, &port);
  for (grpc::Service* service : services) builder.RegisterService(service);
  std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server == nullptr || port <= 0) {
    return absl::AlreadyExistsError(absl::StrCat(
        "cannot listen on ", address, ": port ", options.port, " of --grpc-port is in use by another ",
        "process, or --host is not an address of this machine; --grpc-port 0 picks a free port"));
  }
  return std::unique_ptr<GrpcServer>(new GrpcServer(options.credentials, std::move(server), port));
}

void GrpcServer::Stop(absl::Duration grace) {
  server_->Shutdown(std::chrono::system_clock::now() + absl::ToChronoNanoseconds(grace));
  server_->Wait();
}

}  // namespace saccade::server
