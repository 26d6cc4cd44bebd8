#include "server/http/http_session.h"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>

#include "server/http/http1_session.h"
#include "server/http/http2_session.h"

namespace saccade::server {
namespace {

// Bytes that are read to know the version.
constexpr size_t kFirstRead = size_t{16} << 10;
// What every HTTP/2 connection begins with (RFC 9113, 3.4).
constexpr std::string_view kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

// Passes everything on to the session of the version, once that is known.
class HttpSession final : public Session {
 public:
  HttpSession(Transport* transport, ExchangeHandler* handler, const HttpLimits* limits,
              RefusalCounter* refusals)
      : transport_(transport),
        handler_(handler),
        limits_(limits),
        refusals_(refusals),
        timer_(&transport->loop().timers(), [this] { OnTimer(); }) {}

  void OnOpen() override {
    if (transport_->alpn() == "h2") return Choose(true);
    if (transport_->alpn() == "http/1.1") return Choose(false);
    deadline_ = Now() + SpreadIdle(*limits_);
    Arm();
  }

  void OnBytes(std::string_view bytes) override {
    if (chosen_ != nullptr) return chosen_->OnBytes(bytes);
    if (closing_) return;
    if (first_byte_ == absl::InfiniteFuture()) {
      first_byte_ = Now();
      deadline_ = first_byte_ + limits_->head_timeout;
      Arm();
    }
    begin_.append(bytes);
    const size_t size = std::min(begin_.size(), kPreface.size());
    const bool same = begin_.compare(0, size, kPreface.substr(0, size)) == 0;
    if (same && size < kPreface.size()) return;
    Choose(same);
    const std::string begin = std::move(begin_);
    chosen_->OnBytes(begin);
  }

  void OnEnd() override {
    if (chosen_ != nullptr) return chosen_->OnEnd();
    Close();
  }

  void OnEndAhead() override {
    if (chosen_ != nullptr) chosen_->OnEndAhead();
  }

  size_t max_read() const override { return chosen_ == nullptr ? kFirstRead : chosen_->max_read(); }

  void OnWritable() override {
    if (chosen_ != nullptr) chosen_->OnWritable();
  }

  void OnLost() override {
    timer_.Cancel();
    if (chosen_ != nullptr) chosen_->OnLost();
  }

  void Drain(absl::Duration grace) override {
    if (chosen_ != nullptr) return chosen_->Drain(grace);
    drain_end_ = std::min(drain_end_, Now() + grace);
    Arm();
  }

  bool IsIdle() const override { return chosen_ == nullptr || chosen_->IsIdle(); }
  size_t open_requests() const override { return chosen_ == nullptr ? 0 : chosen_->open_requests(); }
  size_t accepted_requests() const override { return chosen_ == nullptr ? 0 : chosen_->accepted_requests(); }

 private:
  absl::Time Now() const { return transport_->loop().Now(); }

  void Choose(bool is_http2) {
    timer_.Cancel();
    chosen_ = is_http2 ? MakeHttp2Session(transport_, handler_, limits_, refusals_)
                       : MakeHttp1Session(transport_, handler_, limits_, refusals_, first_byte_);
    chosen_->OnOpen();
    if (drain_end_ != absl::InfiniteFuture()) {
      chosen_->Drain(std::max(drain_end_ - Now(), absl::ZeroDuration()));
    }
  }

  // A client that has begun is not cut by a drain before its head timeout.
  void Arm() {
    timer_.Set(first_byte_ == absl::InfiniteFuture() ? std::min(deadline_, drain_end_) : deadline_);
  }

  void OnTimer() {
    if (first_byte_ != absl::InfiniteFuture()) {
      Count(Refusal::kHeadTimeout);
    } else if (Now() < drain_end_) {
      Count(Refusal::kIdleTimeout);
    }
    Close();
  }

  void Close() {
    closing_ = true;
    timer_.Cancel();
    transport_->CloseAfterOutput();
  }

  void Count(Refusal reason) {
    if (refusals_ != nullptr) refusals_->Count(reason);
  }

  Transport* const transport_;
  ExchangeHandler* const handler_;
  const HttpLimits* const limits_;
  RefusalCounter* const refusals_;

  // Null until the version is known.
  std::unique_ptr<Session> chosen_;
  // What came before that: a part of the preface.
  std::string begin_;
  absl::Time first_byte_ = absl::InfiniteFuture();
  // When the version must be known.
  absl::Time deadline_ = absl::InfiniteFuture();
  // When connections that have sent nothing end, because of a drain.
  absl::Time drain_end_ = absl::InfiniteFuture();
  bool closing_ = false;
  Timer timer_;
};

}  // namespace

std::unique_ptr<Session> MakeHttpSession(Transport* transport, ExchangeHandler* handler,
                                         const HttpLimits* limits, RefusalCounter* refusals) {
  return std::make_unique<HttpSession>(transport, handler, limits, refusals);
}

}  // namespace saccade::server
