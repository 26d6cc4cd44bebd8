// An HTTP/2 session without a socket, for tests.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "server/http/http2_session.h"
#include "server/http/testing/frames.h"
#include "server/http/testing/refusal_counts.h"
#include "server/net/testing/manual_loop.h"
#include "server/net/testing/session_pipe.h"

namespace saccade::server {

inline constexpr char kPong[] = "12345678";

// Answers each request with its body; "/wait" not at all, "/early" before the body has come.
class EchoHandler final : public ExchangeHandler {
 public:
  struct Facts {
    int begun = 0;
    int answered = 0;
    int lost = 0;
    size_t max_body = 0;
    std::vector<Exchange*> waiting;
    HttpHeaders last_headers;
    std::string last_authority;
  };

  class Receiver final : public ExchangeReceiver {
   public:
    Receiver(Exchange* exchange, Facts* facts) : exchange_(exchange), facts_(facts) {
      if (exchange->head().path == "/early") Answer("early");
      if (exchange->head().path == "/large") exchange->AllowBody(uint64_t{1} << 30);
    }
    void OnBody(absl::string_view bytes) override {
      body_.append(bytes.data(), bytes.size());
      facts_->max_body = std::max(facts_->max_body, body_.size());
    }
    void OnBodyEnd() override {
      if (exchange_->head().path == "/wait") {
        facts_->waiting.push_back(exchange_);
      } else {
        Answer(body_);
      }
    }
    void OnWritten() override {}
    void OnOver(bool answered) override { ++(answered ? facts_->answered : facts_->lost); }

   private:
    void Answer(const std::string& text) {
      exchange_->SendHead(200, {{"content-type", "text/plain"}});
      auto owner = std::make_shared<std::string>(text);
      exchange_->SendBody(BytePieces(*owner, owner));
      exchange_->End({{"trailer", "yes"}});
    }

    Exchange* const exchange_;
    Facts* const facts_;
    std::string body_;
  };

  std::unique_ptr<ExchangeReceiver> Begin(Exchange* exchange) override {
    ++facts.begun;
    facts.last_headers = exchange->head().headers;
    facts.last_authority = exchange->head().authority;
    return std::make_unique<Receiver>(exchange, &facts);
  }

  Facts facts;
};

class Http2SessionTest : public ::testing::Test {
 protected:
  // Opens a connection whose client has sent its preface and SETTINGS.
  void Open() {
    pipe_ = std::make_unique<SessionPipe>(&loop_);
    pipe_->Open(MakeHttp2Session(pipe_.get(), &handler_, &limits_, &refusals_));
    pipe_->Send(std::string(kPreface) + SettingsFrame());
  }

  std::vector<Frame> Answers() { return FramesIn(pipe_->TakeOutput()); }
  static std::vector<Frame> OfType(const std::vector<Frame>& frames, uint8_t type) {
    std::vector<Frame> found;
    for (const Frame& frame : frames)
      if (frame.type == type) found.push_back(frame);
    return found;
  }
  // The error codes of GOAWAY frames.
  static std::vector<uint32_t> GoawayCodes(const std::vector<Frame>& frames) {
    std::vector<uint32_t> codes;
    for (const Frame& frame : OfType(frames, kGoaway)) codes.push_back(NumberAt(frame.payload, 4, 4));
    return codes;
  }

  ManualLoop loop_;
  HttpLimits limits_;
  EchoHandler handler_;
  RefusalCounts refusals_;
  std::unique_ptr<SessionPipe> pipe_;
};

// Returns `fields` followed by `more`.
inline Fields With(Fields fields, std::initializer_list<std::pair<std::string, std::string>> more) {
  for (const auto& field : more) fields.push_back(field);
  return fields;
}

}  // namespace saccade::server
