// A connection without a socket, for tests of sessions. The test plays the client.
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "absl/types/span.h"
#include "server/net/session.h"
#include "server/net/testing/manual_loop.h"

namespace saccade::server {

// Behaves as Connection does, on virtual time. Single thread. The functions of the client's side run the loop
// until it is idle.
class SessionPipe final : public Transport {
 public:
  // `loop` must outlive the pipe.
  explicit SessionPipe(ManualLoop* loop, Peer peer = {"127.0.0.1", true, false}, std::string alpn = "")
      : loop_(loop), peer_(std::move(peer)), alpn_(std::move(alpn)) {}
  // Breaks the connection if it is still open.
  ~SessionPipe() override {
    *alive_ = false;
    Lose();
  }

  // Takes the session, whose transport must be this object, and opens it.
  void Open(std::unique_ptr<Session> session) {
    session_ = std::move(session);
    session_->OnOpen();
    loop_->RunUntilIdle();
  }

  // The client's side.

  // Delivers the bytes in one call of OnBytes(), later if reading is paused.
  void Send(std::string_view bytes) {
    waiting_.append(bytes);
    Deliver();
    loop_->RunUntilIdle();
  }
  // Closes the client's direction.
  void EndSending() {
    ended_ = true;
    if (paused_ && Receives()) session_->OnEndAhead();
    Deliver();
    loop_->RunUntilIdle();
  }
  // The connection breaks, as by a reset.
  void Break() {
    Lose();
    loop_->RunUntilIdle();
  }
  // From now on the socket takes only so many bytes. Without this call it takes everything.
  void LimitRoom(size_t bytes) { room_ = bytes; }
  // The socket takes `bytes` more.
  void GiveRoom(size_t bytes) {
    room_ += std::min(bytes, std::numeric_limits<size_t>::max() - room_);
    Flush();
    loop_->RunUntilIdle();
  }
  // Returns what the session has written since the last call.
  std::string TakeOutput() { return std::exchange(written_, {}); }

  // What the session has done.

  // Whether CloseAfterOutput() was called.
  bool closing() const { return closing_; }
  // Whether CloseAfterOutput() was called and all output was written.
  bool closed() const { return closed_; }
  // Whether Abort() was called.
  bool aborted() const { return aborted_; }
  // Whether OnLost() was called. The session is destroyed then.
  bool lost() const { return lost_; }
  bool reading_paused() const { return paused_; }
  // Null when the connection is lost.
  Session* session() { return session_.get(); }

  // Transport.
  Loop& loop() override { return *loop_; }
  const Peer& peer() const override { return peer_; }
  std::string_view alpn() const override { return alpn_; }
  Output& output() override { return output_; }
  void Flush() override {
    if (std::exchange(flush_scheduled_, true)) return;
    loop_->AtEndOfRound(IfAlive([this] {
      flush_scheduled_ = false;
      Write();
    }));
  }
  void PauseReading(bool pause) override {
    paused_ = pause;
    if (!pause) loop_->Post(IfAlive([this] { Deliver(); }));
  }
  void CloseAfterOutput() override {
    closing_ = true;
    Flush();
  }
  void Abort() override {
    aborted_ = true;
    loop_->AtEndOfRound(IfAlive([this] { Lose(); }));
  }

 private:
  template <typename Action>
  Loop::Task IfAlive(Action action) {
    return [alive = alive_, action] {
      if (*alive) action();
    };
  }

  bool Receives() const { return session_ != nullptr && !closing_ && !aborted_; }

  void Deliver() {
    if (!Receives() || paused_) return;
    if (!waiting_.empty()) {
      const std::string bytes = std::exchange(waiting_, {});
      session_->OnBytes(bytes);
    }
    if (ended_ && !end_delivered_ && Receives() && !paused_) {
      end_delivered_ = true;
      session_->OnEnd();
    }
  }

  void Write() {
    if (session_ == nullptr || aborted_) return;
    bool wrote = false;
    while (room_ > 0 && !output_.empty()) {
      iovec first;
      output_.Peek(absl::MakeSpan(&first, 1));
      const size_t size = std::min(first.iov_len, room_);
      written_.append(static_cast<const char*>(first.iov_base), size);
      if (room_ != std::numeric_limits<size_t>::max()) room_ -= size;
      wrote = true;
      output_.Consume(size);
    }
    if (closing_ && output_.empty()) {
      closed_ = true;
      loop_->AtEndOfRound(IfAlive([this] { Lose(); }));
    } else if (wrote && output_.size() < kLowWater && Receives()) {
      session_->OnWritable();
    }
  }

  void Lose() {
    lost_ = true;
    if (session_ == nullptr) return;
    session_->OnLost();
    output_.Clear();
    session_.reset();
  }

  ManualLoop* const loop_;
  const Peer peer_;
  const std::string alpn_;
  // Read by tasks that may run after the pipe's end.
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  // Sent by the client and not delivered yet.
  std::string waiting_;
  std::string written_;
  size_t room_ = std::numeric_limits<size_t>::max();
  bool flush_scheduled_ = false;
  bool paused_ = false;
  bool ended_ = false;
  bool end_delivered_ = false;
  bool closing_ = false;
  bool closed_ = false;
  bool aborted_ = false;
  bool lost_ = false;
  Output output_;
  std::unique_ptr<Session> session_;
};

}  // namespace saccade::server
