#include "server/simulation/front/checked_dispatcher.h"

#include <cstdint>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "server/grpc/grpc_handler.h"

namespace saccade::server::simulation {

class CheckedDispatcher::Receiver final : public ExchangeReceiver {
 public:
  Receiver(CheckedDispatcher* dispatcher, const RequestHead& head, std::unique_ptr<ExchangeReceiver> receiver)
      : dispatcher_(*dispatcher),
        what_(absl::StrCat(head.method, " ", head.path)),
        length_(head.content_length),
        receiver_(std::move(receiver)) {}
  ~Receiver() override { Expect(is_over_, "was destroyed before its end"); }

  void OnBody(absl::string_view bytes) override {
    received_ += bytes.size();
    Expect(!bytes.empty() && !is_complete_ && !is_over_, "got bytes after its end, or none");
    Expect(received_ <= length_.value_or(received_), "got more bytes than it announced");
    receiver_->OnBody(bytes);
  }
  void OnBodyEnd() override {
    Expect(!is_complete_ && !is_over_, "was completed twice");
    Expect(received_ == length_.value_or(received_), "was completed with fewer bytes than it announced");
    is_complete_ = true;
    receiver_->OnBodyEnd();
  }
  void OnWritten() override {
    Expect(!is_over_, "has sent bytes after its end");
    receiver_->OnWritten();
  }
  bool OnShutdown() override { return receiver_->OnShutdown(); }
  void OnOver(bool answered) override {
    Expect(!is_over_, "ended twice");
    is_over_ = true;
    ++dispatcher_.over_;
    receiver_->OnOver(answered);
  }

 private:
  void Expect(bool holds, const char* otherwise) {
    if (!holds) dispatcher_.violate_(absl::StrCat("the request ", what_, " ", otherwise));
  }

  CheckedDispatcher& dispatcher_;
  const std::string what_;
  const std::optional<uint64_t> length_;
  const std::unique_ptr<ExchangeReceiver> receiver_;
  uint64_t received_ = 0;
  bool is_complete_ = false;
  bool is_over_ = false;
};

std::unique_ptr<ExchangeReceiver> CheckedDispatcher::Begin(Exchange* exchange) {
  ++begun_;
  ExchangeHandler* const handler = IsGrpc(exchange->head()) ? grpc_ : http_;
  return std::make_unique<Receiver>(this, exchange->head(), handler->Begin(exchange));
}

}  // namespace saccade::server::simulation
