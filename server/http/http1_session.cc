#include "server/http/http1_session.h"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/http/http1_exchange.h"
#include "server/http/http1_response.h"
#include "server/http/http_message.h"
#include "server/http/request_parser.h"

namespace saccade::server {
namespace {

// Reading pauses when this many bytes wait for the request in progress.
constexpr size_t kMaxAhead = size_t{16} << 10;
// Empty lines before a request that are skipped. Beyond them, they are taken for the request.
constexpr int kMaxEmptyLines = 4;
// Capacity that an empty buffer keeps between requests.
constexpr size_t kMaxKept = size_t{1} << 10;

class Http1Session final : public Session, public Http1Connection {
 public:
  Http1Session(Transport* transport, ExchangeHandler* handler, const HttpLimits* limits,
               RefusalCounter* refusals, absl::Time first_byte)
      : transport_(transport),
        handler_(handler),
        limits_(*limits),
        idle_timeout_(SpreadIdle(*limits)),
        refusals_(refusals),
        idle_since_(transport->loop().Now()),
        timer_(&transport->loop().timers(), [this] { RunTimer(); }) {
    if (first_byte != absl::InfiniteFuture()) head_deadline_ = first_byte + limits_.head_timeout;
  }

  void OnOpen() override;
  void OnBytes(std::string_view bytes) override;
  void OnEnd() override;
  void OnEndAhead() override;
  size_t max_read() const override {
    return kMaxAhead + (exchange_ == nullptr ? 0 : static_cast<size_t>(exchange_->takes()));
  }
  void OnWritable() override {}
  void OnLost() override;
  void Drain(absl::Duration grace) override;
  bool IsIdle() const override { return exchange_ == nullptr; }
  size_t open_requests() const override { return exchange_ == nullptr ? 0 : 1; }
  size_t accepted_requests() const override {
    return exchange_ != nullptr && (exchange_->body_complete() || exchange_->unsent() > 0) ? 1 : 0;
  }

  // Http1Connection.
  Transport& transport() override { return *transport_; }
  bool StaysOpen() const override { return !draining_; }
  void OnPermission() override { ConsumeInput(); }
  void Close() override;
  void Abort() override;
  void Finish() override { EndExchange(true); }
  void FinishLater() override { EndExchangeLater(true); }

 private:
  // Each function that parses returns how many of `bytes` are done with; 0 if more are needed, or if they
  // have to wait.
  void ConsumeInput();
  size_t Consume(absl::string_view bytes);
  size_t ConsumeHead(absl::string_view bytes);
  size_t ConsumeBody(absl::string_view bytes);
  void Begin(std::unique_ptr<RequestParser> parser);
  void AfterInput();

  // Respond in place of the handler, and close the connection.
  void Refuse(const HttpResponse& response, std::optional<Refusal> reason);
  void RefuseBody(const HttpResponse& response);
  void EndExchange(bool answered);
  void EndExchangeLater(bool answered);

  absl::Time Now() const { return transport_->loop().Now(); }
  // Makes the timer run when the next thing is due.
  void Arm();
  // Calls OnTimer(); if that throws, the connection ends.
  void RunTimer();
  void OnTimer();
  void OnTimerBetweenRequests();

  void Count(Refusal reason) {
    if (refusals_ != nullptr) refusals_->Count(reason);
  }

  Transport* const transport_;
  ExchangeHandler* const handler_;
  const HttpLimits& limits_;
  const absl::Duration idle_timeout_;
  RefusalCounter* const refusals_;

  // Received, and not done with.
  std::string input_;
  // How many bytes of an incomplete head at the front of the input were searched for its end.
  size_t searched_ = 0;
  // Number of empty lines before the request that were skipped.
  int skipped_lines_ = 0;
  bool consuming_ = false;
  bool paused_ = false;
  bool client_ended_ = false;
  // The client has closed its direction; bytes may wait before that.
  bool end_is_ahead_ = false;
  // Close() or Abort() was called.
  bool closing_ = false;
  // Null between requests.
  std::unique_ptr<Http1Exchange> exchange_;

  // No further requests are accepted, but for those that come before idle_end_.
  bool draining_ = false;
  absl::Time idle_end_ = absl::InfiniteFuture();
  // When the connection is so old that it drains, and when it is ended.
  absl::Time drain_at_ = absl::InfiniteFuture();
  absl::Time abort_at_ = absl::InfiniteFuture();
  // When the head that has begun must be complete; InfiniteFuture if none has.
  absl::Time head_deadline_ = absl::InfiniteFuture();
  absl::Time idle_since_;
  // What the timer is set to. It may run before anything is due.
  absl::Time armed_ = absl::InfiniteFuture();
  Timer timer_;
  // Expires with the session.
  const std::shared_ptr<char> alive_ = std::make_shared<char>();
};

void Http1Session::OnOpen() {
  idle_since_ = Now();
  drain_at_ = Now() + SpreadAge(limits_);
  abort_at_ = drain_at_ + limits_.max_connection_age_grace;
  Arm();
}

void Http1Session::OnBytes(std::string_view bytes) {
  if (closing_) return;
  if (!input_.empty() || consuming_) {
    input_.append(bytes);
    ConsumeInput();
    return;
  }
  // Bodies are delivered without having been copied.
  const size_t taken = Consume({bytes.data(), bytes.size()});
  input_.assign(bytes.substr(taken));
  AfterInput();
}

void Http1Session::OnEnd() {
  if (closing_) return;
  client_ended_ = true;
  ConsumeInput();
}

void Http1Session::OnEndAhead() {
  if (closing_) return;
  end_is_ahead_ = true;
  ConsumeInput();
}

void Http1Session::OnLost() {
  closing_ = true;
  timer_.Cancel();
  EndExchange(false);
}

void Http1Session::Drain(absl::Duration grace) {
  if (closing_) return;
  draining_ = true;
  idle_end_ = std::min(idle_end_, Now() + grace);
  OnTimer();
}

void Http1Session::ConsumeInput() {
  if (consuming_ || closing_) return;
  input_.erase(0, Consume(input_));
  AfterInput();
}

size_t Http1Session::Consume(absl::string_view bytes) {
  consuming_ = true;
  size_t taken = 0;
  while (!closing_ && taken < bytes.size()) {
    const absl::string_view rest = bytes.substr(taken);
    size_t step = 0;
    if (exchange_ == nullptr) {
      step = ConsumeHead(rest);
    } else if (!exchange_->body_complete() && !exchange_->over()) {
      step = ConsumeBody(rest);
    }
    if (step == 0) break;
    taken += step;
  }
  consuming_ = false;
  return closing_ ? bytes.size() : taken;
}

size_t Http1Session::ConsumeHead(absl::string_view bytes) {
  // RFC 9112, 2.2: empty lines before a request are ignored, at least one.
  if (skipped_lines_ < kMaxEmptyLines && absl::StartsWith(bytes, "\r\n")) {
    ++skipped_lines_;
    return 2;
  }
  if (head_deadline_ == absl::InfiniteFuture()) head_deadline_ = Now() + limits_.head_timeout;
  constexpr absl::string_view kEnd = "\r\n\r\n";
  const size_t end = bytes.find(kEnd, searched_);
  const bool complete = end != absl::string_view::npos;
  const size_t size = complete ? end + kEnd.size() : bytes.size();
  if (size > limits_.max_head_bytes) {
    Refuse(HttpError(431, absl::StrCat("more than ", limits_.max_head_bytes, " bytes of headers")),
           Refusal::kHeadTooLarge);
    return size;
  }
  if (!complete) {
    searched_ = std::max(size, kEnd.size()) - kEnd.size();
    return 0;
  }
  searched_ = 0;
  skipped_lines_ = 0;
  head_deadline_ = absl::InfiniteFuture();
  auto parser = std::make_unique<RequestParser>(limits_);
  if (const auto malformed = parser->ReadHead(bytes.substr(0, size))) {
    Refuse(*malformed, malformed->status == 431 ? Refusal::kHeadTooLarge : Refusal::kMalformed);
  } else {
    Begin(std::move(parser));
  }
  return size;
}

void Http1Session::Begin(std::unique_ptr<RequestParser> parser) {
  const auto expected = FindHeader(parser->head().headers, "expect");
  if (expected && !absl::EqualsIgnoreCase(*expected, "100-continue")) {
    Refuse(HttpError(417, "this Expect is not known; send 100-continue, or none"), std::nullopt);
    return;
  }
  exchange_ = std::make_unique<Http1Exchange>(this, std::move(parser));
  exchange_->Begin(handler_);
}

size_t Http1Session::ConsumeBody(absl::string_view bytes) {
  const auto taken = exchange_->TakeBody(bytes);
  if (closing_) return bytes.size();
  if (taken.malformed) {
    RefuseBody(*taken.malformed);
  } else if (taken.bytes == 0 && !exchange_->waits_for_permission() &&
             bytes.size() >= limits_.max_head_bytes) {
    RefuseBody(HttpError(400, "a chunk's head or the trailers have no end"));
  }
  return taken.bytes;
}

// Called when all that can be done with the input is done.
void Http1Session::AfterInput() {
  if (closing_) return;
  if (exchange_ == nullptr) {
    if (client_ended_) return Close();
    // There may be many idle connections, so that each keeps little memory.
    if (input_.empty() && input_.capacity() > kMaxKept) input_ = std::string();
  } else if (!exchange_->over()) {
    const bool waits = exchange_->waits_for_permission();
    // A client whose body is not complete may only have to wait.
    if ((client_ended_ || end_is_ahead_) && exchange_->body_complete()) return Abort();
    if (client_ended_ && !waits) return RefuseBody(HttpError(400, "the body ended before its end"));
    if (exchange_->expects_continue() && input_.empty() && !exchange_->has_response_head()) {
      exchange_->SendContinue();
    }
  }
  const bool ahead =
      exchange_ != nullptr && (exchange_->body_complete() || exchange_->waits_for_permission());
  const bool pause = ahead && input_.size() >= kMaxAhead;
  if (pause != paused_) transport_->PauseReading(paused_ = pause);
  Arm();
}

void Http1Session::Refuse(const HttpResponse& response, std::optional<Refusal> reason) {
  if (reason) Count(*reason);
  Http1Response writer({}, &transport_->output());
  writer.AddHead(response.status,
                 {{"content-type", response.content_type},
                  {"content-length", absl::StrCat(response.body.size())},
                  {"x-content-type-options", "nosniff"}},
                 false);
  transport_->output().Copy(response.body);
  Close();
}

void Http1Session::RefuseBody(const HttpResponse& response) {
  if (exchange_->has_response_head()) return Abort();
  exchange_->Drop();
  Refuse(response, Refusal::kMalformed);
  EndExchangeLater(false);
}

void Http1Session::Close() {
  closing_ = true;
  timer_.Cancel();
  transport_->CloseAfterOutput();
}

void Http1Session::Abort() {
  closing_ = true;
  timer_.Cancel();
  transport_->Abort();
}

void Http1Session::EndExchange(bool answered) {
  if (exchange_ == nullptr) return;
  const std::unique_ptr<Http1Exchange> ended = std::move(exchange_);
  ended->OnOver(answered);
  if (closing_) return;
  idle_since_ = Now();
  ConsumeInput();
}

void Http1Session::EndExchangeLater(bool answered) {
  transport_->loop().Post([this, answered, alive = std::weak_ptr<char>(alive_)] {
    if (!alive.expired()) EndExchange(answered);
  });
}

void Http1Session::Arm() {
  absl::Time next = std::min(abort_at_, draining_ ? absl::InfiniteFuture() : drain_at_);
  if (exchange_ == nullptr && head_deadline_ != absl::InfiniteFuture()) {
    next = std::min(next, head_deadline_);
  } else if (exchange_ == nullptr) {
    next = std::min({next, idle_end_, idle_since_ + idle_timeout_});
  }
  if (next >= armed_) return;
  armed_ = next;
  timer_.Set(next);
}

void Http1Session::RunTimer() {
  try {
    OnTimer();
  } catch (...) {
    Abort();
  }
}

void Http1Session::OnTimer() {
  armed_ = absl::InfiniteFuture();
  if (Now() >= abort_at_) {
    if (refusals_ != nullptr) refusals_->CountCut(accepted_requests());
    return Abort();
  }
  if (!draining_ && Now() >= drain_at_) {
    draining_ = true;
    idle_end_ = Now();
  }
  if (exchange_ == nullptr) OnTimerBetweenRequests();
  if (!closing_) Arm();
}

void Http1Session::OnTimerBetweenRequests() {
  if (head_deadline_ != absl::InfiniteFuture()) {
    if (Now() < head_deadline_) return;
    Refuse(HttpError(408, "the request did not come to its end in time"), Refusal::kHeadTimeout);
  } else if (Now() >= idle_end_) {
    Close();
  } else if (Now() >= idle_since_ + idle_timeout_) {
    Count(Refusal::kIdleTimeout);
    Close();
  }
}

}  // namespace

std::unique_ptr<Session> MakeHttp1Session(Transport* transport, ExchangeHandler* handler,
                                          const HttpLimits* limits, RefusalCounter* refusals,
                                          absl::Time first_byte) {
  return std::make_unique<Http1Session>(transport, handler, limits, refusals, first_byte);
}

}  // namespace saccade::server
