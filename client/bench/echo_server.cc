#include "client/bench/echo_server.h"

#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include "absl/strings/str_cat.h"
#include "inference/grpc_service.grpc.pb.h"

namespace saccade::client {
namespace {

using Inference = inference::GRPCInferenceService;

class Echo final : public Inference::WithRawCallbackMethod_ModelInfer<Inference::Service> {
 public:
  grpc::ServerUnaryReactor* ModelInfer(grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
                                       grpc::ByteBuffer* response) override {
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    // A client that closed its connection too early has sent no message. gRPC aborts if it has to send such a
    // one.
    if (!request->Valid()) {
      reactor->Finish(grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, "the request has no message"));
      return reactor;
    }
    *response = *request;
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }
};

}  // namespace

class EchoServer::Running {
 public:
  Running() {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    builder.SetMaxReceiveMessageSize(-1);
    builder.RegisterService(&echo_);
    server_ = builder.BuildAndStart();
  }
  ~Running() { server_->Shutdown(); }
  int port() const { return port_; }

 private:
  Echo echo_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

EchoServer::EchoServer()
    : running_(std::make_unique<Running>()), url_(absl::StrCat("127.0.0.1:", running_->port())) {}

EchoServer::~EchoServer() = default;

}  // namespace saccade::client
