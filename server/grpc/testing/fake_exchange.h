// An exchange whose client and connection are played by the test.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "server/http/exchange.h"
#include "server/net/testing/manual_loop.h"

namespace saccade::server {

// What the server has answered.
struct FakeAnswer {
  int status = 0;
  HttpHeaders head;
  std::string body;
  // Set when the answer is complete.
  std::optional<HttpHeaders> trailers;
  std::optional<ExchangeError> reset;

  // The first field with that name, in the trailers or else in the head; "" if there is none.
  std::string Field(absl::string_view name) const {
    for (const HttpHeaders* fields : {trailers ? &*trailers : nullptr, &head}) {
      if (fields == nullptr) continue;
      if (const auto value = FindHeader(*fields, name)) return std::string(*value);
    }
    return "";
  }
};

class FakeExchange final : public Exchange {
 public:
  FakeExchange(ManualLoop* loop, RequestHead head, Peer peer = {"10.0.0.7", false, false})
      : loop_(loop), head_(std::move(head)), peer_(std::move(peer)) {}
  ~FakeExchange() override {
    if (receiver_ != nullptr) Break();
  }

  // The head of a call; `fields` follow the usual ones.
  static RequestHead Head(std::string path, HttpHeaders fields = {},
                          std::string content_type = "application/grpc") {
    RequestHead head;
    head.version = HttpVersion::kHttp2;
    head.method = "POST";
    head.path = std::move(path);
    head.authority = "localhost:8001";
    head.headers = {{"content-type", std::move(content_type)}, {"te", "trailers"}};
    for (auto& field : fields) head.headers.push_back(std::move(field));
    head.has_body = true;
    return head;
  }

  // The client's side. Each runs the loop until it is idle.

  void Begin(ExchangeHandler& handler) {
    receiver_ = handler.Begin(this);
    loop_->RunUntilIdle();
  }
  // Sends a part of the body. Like a session, drops it once the answer is complete.
  void SendBodyPart(absl::string_view bytes) {
    received_ += bytes.size();
    if (receiver_ != nullptr && !answer_.trailers && !answer_.reset) receiver_->OnBody(bytes);
    loop_->RunUntilIdle();
  }
  void EndBody() {
    if (receiver_ != nullptr && !answer_.trailers && !answer_.reset) receiver_->OnBodyEnd();
    loop_->RunUntilIdle();
  }
  // The server shuts down. Returns whether the request may not be refused.
  bool ShutDown() {
    const bool ends = receiver_->OnShutdown();
    loop_->RunUntilIdle();
    return ends;
  }
  // The client resets the request, or its connection breaks.
  void Break() {
    Over(false);
    loop_->RunUntilIdle();
  }
  // From now on nothing is written to the socket.
  void Stall() { stalled_ = true; }
  void Resume() {
    stalled_ = false;
    Write();
    loop_->RunUntilIdle();
  }

  // Shows the server another loop, which must pass everything on to the exchange's.
  void ShowLoop(Loop* loop) { shown_ = loop; }

  const FakeAnswer& answer() const { return answer_; }
  // Bytes of the body that the client may send in all.
  uint64_t allowed() const { return allowed_; }
  uint64_t received() const { return received_; }
  // OnOver() was called.
  bool over() const { return begun_over_; }

  // Exchange.
  const RequestHead& head() const override { return head_; }
  const Peer& peer() const override { return peer_; }
  Loop& loop() override { return *shown_; }
  void AllowBody(uint64_t total) override { allowed_ = std::max(allowed_, total); }
  void SendHead(int status, HttpHeaders headers) override {
    answer_.status = status;
    answer_.head = std::move(headers);
  }
  void SendBody(BytePieces bytes) override {
    unsent_ += bytes.size();
    queue_.push_back(std::move(bytes));
    PostWrite();
  }
  void End(HttpHeaders trailers) override {
    trailers_ = std::move(trailers);
    answer_.trailers = trailers_;
    PostWrite();
  }
  void Reset(ExchangeError error) override {
    answer_.reset = error;
    queue_.clear();
    unsent_ = 0;
    loop_->Post([this] { Over(false); });
  }
  size_t unsent() const override { return unsent_; }

 private:
  void PostWrite() {
    loop_->Post([this] { Write(); });
  }

  void Write() {
    if (stalled_ || begun_over_) return;
    bool wrote = false;
    while (!queue_.empty()) {
      for (const std::string_view piece : queue_.front().pieces()) answer_.body.append(piece);
      unsent_ -= queue_.front().size();
      queue_.pop_front();
      wrote = true;
    }
    if (wrote && receiver_ != nullptr) receiver_->OnWritten();
    if (trailers_ && queue_.empty()) Over(true);
  }

  void Over(bool answered) {
    if (std::exchange(begun_over_, true)) return;
    queue_.clear();
    const auto receiver = std::exchange(receiver_, nullptr);
    if (receiver != nullptr) receiver->OnOver(answered);
  }

  ManualLoop* const loop_;
  Loop* shown_ = loop_;
  const RequestHead head_;
  const Peer peer_;
  std::unique_ptr<ExchangeReceiver> receiver_;
  FakeAnswer answer_;
  uint64_t allowed_ = kFirstBodyBytes;
  uint64_t received_ = 0;
  std::deque<BytePieces> queue_;
  size_t unsent_ = 0;
  std::optional<HttpHeaders> trailers_;
  bool stalled_ = false;
  bool begun_over_ = false;
};

}  // namespace saccade::server
