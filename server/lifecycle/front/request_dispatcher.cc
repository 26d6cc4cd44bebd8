#include "server/lifecycle/front/request_dispatcher.h"

#include <utility>

#include "server/core/memory_reserve.h"
#include "server/grpc/grpc_handler.h"

namespace saccade::server {

// The requests with bodies that are open on one loop, as a linked list.
struct RequestDispatcher::OpenRequests {
  Loop* loop = nullptr;
  Request* first = nullptr;
};

// Passes the events of one request on, and remembers whether its body is complete.
class RequestDispatcher::Request final : public ExchangeReceiver {
 public:
  Request(Exchange* exchange, std::unique_ptr<ExchangeReceiver> receiver, OpenRequests* open)
      : exchange_(exchange), receiver_(std::move(receiver)), open_(open), next_(open->first) {
    if (next_ != nullptr) next_->previous_ = this;
    open_->first = this;
  }
  ~Request() override {
    if (next_ != nullptr) next_->previous_ = previous_;
    (previous_ == nullptr ? open_->first : previous_->next_) = next_;
  }

  void OnBody(absl::string_view bytes) override { receiver_->OnBody(bytes); }
  void OnBodyEnd() override {
    is_complete_ = true;
    receiver_->OnBodyEnd();
  }
  void OnWritten() override { receiver_->OnWritten(); }
  void OnOver(bool answered) override { receiver_->OnOver(answered); }

  void EndIfUnfinished() {
    if (is_complete_ || exchange_->unsent() > 0 || receiver_->OnShutdown()) return;
    exchange_->Reset(ExchangeError::kRefused);
  }
  Request* next() const { return next_; }

 private:
  Exchange* const exchange_;
  const std::unique_ptr<ExchangeReceiver> receiver_;
  OpenRequests* const open_;
  bool is_complete_ = false;
  Request* previous_ = nullptr;
  Request* next_;
};

RequestDispatcher::RequestDispatcher(ExchangeHandler* grpc, ExchangeHandler* http,
                                     const std::vector<Loop*>& loops)
    : grpc_(grpc), http_(http) {
  for (Loop* const loop : loops) {
    open_.push_back(std::make_shared<OpenRequests>());
    open_.back()->loop = loop;
  }
}

RequestDispatcher::~RequestDispatcher() = default;

RequestDispatcher::OpenRequests* RequestDispatcher::OnLoop(const Loop& loop) const {
  // There are a few loops at most.
  size_t i = 0;
  while (open_[i]->loop != &loop) ++i;
  return open_[i].get();
}

std::unique_ptr<ExchangeReceiver> RequestDispatcher::Begin(Exchange* exchange) {
  // Admission rejects requests while there is no reserve. Those that it does not see, like a load, restore it
  // too.
  RestoreMemoryReserve();
  ExchangeHandler* const handler = IsGrpc(exchange->head()) ? grpc_ : http_;
  std::unique_ptr<ExchangeReceiver> receiver = handler->Begin(exchange);
  if (!exchange->head().has_body) return receiver;
  try {
    // It allocates before it takes the receiver.
    return std::make_unique<Request>(exchange, std::move(receiver), OnLoop(exchange->loop()));
  } catch (...) {
    if (receiver != nullptr) receiver->OnOver(false);
    throw;
  }
}

void RequestDispatcher::EndUnfinished() {
  for (const std::shared_ptr<OpenRequests>& open : open_) {
    open->loop->Post([open] {
      // Neither OnShutdown() nor Reset() destroys a request before it returns.
      for (Request* request = open->first; request != nullptr; request = request->next())
        request->EndIfUnfinished();
    });
  }
}

}  // namespace saccade::server
