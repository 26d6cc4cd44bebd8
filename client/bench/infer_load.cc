#include "client/bench/infer_load.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/security/credentials.h>

#include <random>
#include <utility>

#include "absl/synchronization/mutex.h"
#include "client/rpc_status.h"
#include "inference/grpc_service.pb.h"

namespace saccade::client {
namespace {

constexpr char kMethod[] = "/inference.GRPCInferenceService/ModelInfer";
constexpr absl::Duration kTimeout = absl::Seconds(60);

std::shared_ptr<grpc::Channel> OpenChannel(const std::string& url) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetMaxReceiveMessageSize(-1);
  return grpc::CreateCustomChannel(url, grpc::InsecureChannelCredentials(), arguments);
}

// Deleted when its callback runs.
struct Call {
  grpc::ClientContext context;
  grpc::ByteBuffer response;
  absl::Time due;
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

// Collects the results of a run. Thread-safe.
class InferLoad::Tally {
 public:
  void Begin() {
    absl::MutexLock lock(&mutex_);
    ++running_;
    ++result_.sent;
  }
  void End(absl::Duration latency, const absl::Status& status) {
    absl::MutexLock lock(&mutex_);
    --running_;
    if (status.ok()) {
      result_.latencies.push_back(latency);
    } else if (result_.failed++ == 0) {
      result_.failure = status;
    }
  }
  // Blocks until every call has ended.
  InferLoadResult Await() {
    absl::MutexLock lock(&mutex_);
    mutex_.Await(absl::Condition(+[](int64_t* running) { return *running == 0; }, &running_));
    return std::move(result_);
  }

 private:
  absl::Mutex mutex_;
  int64_t running_ ABSL_GUARDED_BY(mutex_) = 0;
  InferLoadResult result_ ABSL_GUARDED_BY(mutex_);
};

class InferLoad::Client {
 public:
  Client(const std::string& url, const grpc::Slice& request)
      : stub_(OpenChannel(url)), request_(&request, 1) {}

  // Makes one call that was due at `due`. Calls `then` with the time and the status when it has ended.
  template <typename Then>
  void Send(Tally* tally, absl::Time due, absl::Time deadline, Then then) {
    auto* call = new Call;
    call->due = due;
    call->context.set_deadline(absl::ToChronoTime(deadline));
    stub_.UnaryCall(&call->context, kMethod, {}, &request_, &call->response,
                    [tally, call, then = std::move(then)](const grpc::Status& status) {
                      const absl::Time now = absl::Now();
                      const absl::Status ended = FromRpcStatus(status, call->context);
                      const absl::Duration latency = now - call->due;
                      delete call;
                      // Called before Tally::End: the run may end as soon as no call is counted as running.
                      then(now, ended);
                      tally->End(latency, ended);
                    });
  }

  void SendUntil(Tally* tally, absl::Time end) {
    tally->Begin();
    const absl::Time sent = absl::Now();
    Send(tally, sent, sent + kTimeout, [this, tally, end](absl::Time now, const absl::Status& status) {
      if (status.ok() && now < end) SendUntil(tally, end);
    });
  }

 private:
  grpc::TemplatedGenericStub<grpc::ByteBuffer, grpc::ByteBuffer> stub_;
  const grpc::ByteBuffer request_;
};

InferLoad::InferLoad(const std::string& url, const std::string& request, int clients) {
  const grpc::Slice slice(request);
  for (int i = 0; i < clients; ++i) clients_.push_back(std::make_unique<Client>(url, slice));
}

InferLoad::~InferLoad() = default;

absl::Status InferLoad::Connect() {
  Tally tally;
  for (const auto& client : clients_) {
    tally.Begin();
    const absl::Time sent = absl::Now();
    client->Send(&tally, sent, sent + kTimeout, [](absl::Time, const absl::Status&) {});
  }
  return tally.Await().failure;
}

InferLoadResult InferLoad::Closed(absl::Duration duration) {
  Tally tally;
  const absl::Time start = absl::Now();
  for (const auto& client : clients_) client->SendUntil(&tally, start + duration);
  InferLoadResult result = tally.Await();
  result.elapsed = absl::Now() - start;
  return result;
}

InferLoadResult InferLoad::Open(const OpenLoop& loop) {
  std::mt19937_64 random(loop.seed);
  std::exponential_distribution<double> gap(loop.rate);
  Tally tally;
  const absl::Time start = absl::Now();
  absl::Time due = start;
  for (size_t i = 0; due < start + loop.duration; ++i) {
    absl::SleepFor(due - absl::Now());
    const auto client = static_cast<int>(i % clients_.size());
    const auto tell = [&loop, client, start, due, sent = absl::Now()](absl::Time now,
                                                                      const absl::Status& status) {
      if (loop.ended != nullptr) loop.ended({client, due - start, sent - start, now - start, status});
    };
    tally.Begin();
    clients_[client]->Send(&tally, due, due + loop.deadline, tell);
    due += absl::Seconds(gap(random));
  }
  InferLoadResult result = tally.Await();
  result.elapsed = absl::Now() - start;
  return result;
}

}  // namespace saccade::client
