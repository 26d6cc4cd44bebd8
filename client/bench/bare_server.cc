#include "client/bench/bare_server.h"

#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "inference/grpc_service.grpc.pb.h"
#include "saccade/v1/vision.grpc.pb.h"

namespace saccade::client {
namespace {

// Responds to every request with the same bytes.
grpc::ServerUnaryReactor* Answer(grpc::CallbackServerContext* context, const grpc::ByteBuffer& fixed,
                                 grpc::ByteBuffer* response) {
  *response = fixed;
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(grpc::Status::OK);
  return reactor;
}

grpc::ByteBuffer ToBuffer(const std::string& bytes) {
  const grpc::Slice slice(bytes);
  return grpc::ByteBuffer(&slice, 1);
}

class Vision final : public v1::Vision::WithRawCallbackMethod_Predict<v1::Vision::Service> {
 public:
  explicit Vision(const std::string& answer) : answer_(ToBuffer(answer)) {}
  grpc::ServerUnaryReactor* Predict(grpc::CallbackServerContext* context, const grpc::ByteBuffer*,
                                    grpc::ByteBuffer* response) override {
    return Answer(context, answer_, response);
  }

 private:
  const grpc::ByteBuffer answer_;
};

using Inference = inference::GRPCInferenceService;

class Live final : public Inference::WithRawCallbackMethod_ServerLive<Inference::Service> {
 public:
  explicit Live(const std::string& answer) : answer_(ToBuffer(answer)) {}
  grpc::ServerUnaryReactor* ServerLive(grpc::CallbackServerContext* context, const grpc::ByteBuffer*,
                                       grpc::ByteBuffer* response) override {
    return Answer(context, answer_, response);
  }

 private:
  const grpc::ByteBuffer answer_;
};

}  // namespace

class BareServer::Services {
 public:
  Services(const std::string& predict_answer, const std::string& live_answer)
      : vision_(predict_answer), live_(live_answer) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(&vision_);
    builder.RegisterService(&live_);
    server_ = builder.BuildAndStart();
  }
  ~Services() { server_->Shutdown(); }
  int port() const { return port_; }

 private:
  Vision vision_;
  Live live_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

BareServer::BareServer(const std::string& predict_answer, const std::string& live_answer)
    : services_(std::make_unique<Services>(predict_answer, live_answer)),
      url_(absl::StrCat("127.0.0.1:", services_->port())) {}

BareServer::~BareServer() = default;

}  // namespace saccade::client
