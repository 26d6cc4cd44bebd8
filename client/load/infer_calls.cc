#include "client/load/infer_calls.h"

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/support/byte_buffer.h>

#include <utility>

#include "client/cpp/rpc_status.h"
#include "client/load/connection.h"
#include "inference/grpc_service.pb.h"

namespace saccade::client {
namespace {

constexpr char kMethod[] = "/inference.GRPCInferenceService/ModelInfer";

// Deleted when its callback runs.
struct InferCall {
  grpc::ClientContext context;
  grpc::ByteBuffer response;
};

}  // namespace

std::string InferRequest(const InferInput& input) {
  inference::ModelInferRequest request;
  request.set_model_name(input.model);
  auto* tensor = request.add_inputs();
  tensor->set_name(input.name);
  tensor->set_datatype(input.datatype);
  for (const int64_t extent : input.shape) tensor->add_shape(extent);
  request.add_raw_input_contents(input.bytes);
  return request.SerializeAsString();
}

class InferCalls::Connection {
 public:
  Connection(const std::string& url, const grpc::Slice& request)
      : stub_(OpenConnection(url)), request_(&request, 1) {}

  void Start(absl::Time deadline, CallDone done) {
    auto* call = new InferCall;
    call->context.set_deadline(absl::ToChronoTime(deadline));
    stub_.UnaryCall(&call->context, kMethod, {}, &request_, &call->response,
                    [call, done = std::move(done)](const grpc::Status& status) {
                      CallResult result{.status = FromRpcStatus(status, call->context)};
                      // The load, and with it the connection, may end as soon as `done` is called.
                      delete call;
                      done(std::move(result));
                    });
  }

 private:
  grpc::TemplatedGenericStub<grpc::ByteBuffer, grpc::ByteBuffer> stub_;
  const grpc::ByteBuffer request_;
};

InferCalls::InferCalls(const std::string& url, const std::string& request, int connections) {
  const grpc::Slice slice(request);
  for (int i = 0; i < connections; ++i) connections_.push_back(std::make_unique<Connection>(url, slice));
}

InferCalls::~InferCalls() = default;

StartCall InferCalls::starter(absl::Duration timeout) {
  return [this, timeout](const LoadCall& call, CallDone done) {
    connections_[call.connection]->Start(call.due + timeout, std::move(done));
  };
}

}  // namespace saccade::client
