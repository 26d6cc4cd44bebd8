// A session whose behaviour a test gives as functions. Without them it sends back what it receives.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <string_view>

#include "server/net/session.h"

namespace saccade::server {

// Shared by all sessions of a test; the counters may be read on any thread. Functions that are not set have
// the behaviour of an echo. They run on the session's loop.
struct SessionHooks {
  std::function<void(Transport*)> on_open;
  std::function<void(Transport*, std::string_view)> on_bytes;
  std::function<void(Transport*)> on_end_ahead;
  std::function<void(Transport*)> on_lost;
  std::function<void(Transport*, absl::Duration)> on_drain;

  std::atomic<int> opened = 0;
  std::atomic<int> lost = 0;
  std::atomic<int> destroyed = 0;
};

// Echoes; a '+' makes it busy with one request more, a '-' with one less.
class HookSession final : public Session {
 public:
  HookSession(Transport* transport, SessionHooks* hooks) : transport_(transport), hooks_(hooks) {}
  ~HookSession() override { ++hooks_->destroyed; }

  void OnOpen() override {
    ++hooks_->opened;
    if (hooks_->on_open) hooks_->on_open(transport_);
  }

  void OnBytes(std::string_view bytes) override {
    for (const char byte : bytes) {
      if (byte == '+') ++open_requests_;
      if (byte == '-') --open_requests_;
    }
    if (hooks_->on_bytes) return hooks_->on_bytes(transport_, bytes);
    transport_->output().Copy(bytes);
    if (transport_->output().size() > Transport::kHighWater) transport_->PauseReading(true);
    transport_->Flush();
  }

  void OnWritable() override { transport_->PauseReading(false); }
  void OnEnd() override { transport_->CloseAfterOutput(); }
  void OnEndAhead() override {
    if (hooks_->on_end_ahead) hooks_->on_end_ahead(transport_);
  }

  void OnLost() override {
    ++hooks_->lost;
    if (hooks_->on_lost) hooks_->on_lost(transport_);
  }

  void Drain(absl::Duration grace) override {
    if (hooks_->on_drain) hooks_->on_drain(transport_, grace);
  }
  bool IsIdle() const override { return open_requests_ == 0; }
  size_t open_requests() const override { return open_requests_; }

 private:
  Transport* const transport_;
  SessionHooks* const hooks_;
  size_t open_requests_ = 0;
};

}  // namespace saccade::server
