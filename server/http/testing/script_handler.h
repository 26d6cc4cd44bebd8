// A handler that records what it gets and lets the test respond.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "server/http/exchange.h"

namespace saccade::server {

class ScriptHandler final : public ExchangeHandler {
 public:
  // One exchange, as its receiver saw it. Stays when the exchange is over.
  struct Seen {
    // Null when the exchange is over.
    Exchange* exchange = nullptr;
    RequestHead head;
    std::string body;
    size_t largest_piece = 0;
    bool complete = false;
    int written = 0;
    bool over = false;
    bool answered = false;

    // Responds with text of an announced length.
    void Answer(const std::string& text) {
      exchange->SendHead(200, {{"content-length", std::to_string(text.size())}});
      Send(text);
      exchange->End({});
    }
    void Send(const std::string& text) {
      const auto owner = std::make_shared<const std::string>(text);
      exchange->SendBody(BytePieces(*owner, owner));
    }
  };

  std::unique_ptr<ExchangeReceiver> Begin(Exchange* exchange) override {
    seen.push_back(std::make_unique<Seen>());
    seen.back()->exchange = exchange;
    seen.back()->head = exchange->head();
    auto receiver = std::make_unique<Receiver>(this, seen.back().get());
    if (on_begin) on_begin(*seen.back());
    return receiver;
  }

  Seen& last() { return *seen.back(); }

  std::vector<std::unique_ptr<Seen>> seen;
  // May respond. Null: nothing happens.
  std::function<void(Seen&)> on_begin;
  std::function<void(Seen&)> on_body;
  std::function<void(Seen&)> on_body_end;

 private:
  class Receiver final : public ExchangeReceiver {
   public:
    Receiver(ScriptHandler* handler, Seen* seen) : handler_(handler), seen_(seen) {}

    void OnBody(absl::string_view bytes) override {
      seen_->body.append(bytes.data(), bytes.size());
      seen_->largest_piece = std::max(seen_->largest_piece, bytes.size());
      if (handler_->on_body) handler_->on_body(*seen_);
    }
    void OnBodyEnd() override {
      seen_->complete = true;
      if (handler_->on_body_end) handler_->on_body_end(*seen_);
    }
    void OnWritten() override { ++seen_->written; }
    void OnOver(bool answered) override {
      seen_->over = true;
      seen_->answered = answered;
      seen_->exchange = nullptr;
    }

   private:
    ScriptHandler* const handler_;
    Seen* const seen_;
  };
};

}  // namespace saccade::server
