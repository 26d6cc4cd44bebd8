// A connection: the socket, its encryption, and the session that speaks over it.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "absl/functional/function_ref.h"
#include "absl/time/time.h"
#include "server/net/client_socket.h"
#include "server/net/connection_group.h"
#include "server/net/event_loop.h"
#include "server/net/session.h"
#include "server/net/wire.h"

namespace saccade::server {

// Loop's thread only. An exception of the session ends this connection and nothing else.
class Connection final : public Transport, private Watcher {
 public:
  // `group` must outlive the connection.
  Connection(ConnectionGroup* group, ClientSocket socket);
  ~Connection() override;

  // Begins the handshake, or opens the session at once. Called once.
  void Start();
  // Tells the session to drain, if it is open.
  void Drain(absl::Duration grace);
  // Closes at once, because its place was given to another connection.
  void Evict();
  size_t open_requests() const { return session_ == nullptr ? 0 : session_->open_requests(); }
  ClientSocket& socket() { return socket_; }
  // Whether the connection is closed or broken; its place will be free at the end of the round.
  bool is_lost() const { return state_ == State::kLost; }

  // Where the group lists this connection.
  ConnectionGroup::Entry& entry() { return entry_; }

  Loop& loop() override { return group_->loop(); }
  const Peer& peer() const override { return socket_.peer(); }
  std::string_view alpn() const override { return wire_ == nullptr ? std::string_view() : wire_->alpn(); }
  Output& output() override { return output_; }
  void Flush() override;
  void PauseReading(bool pause) override;
  void CloseAfterOutput() override;
  void Abort() override;

 private:
  enum class State : uint8_t {
    kHandshake,
    kOpen,
    kClosing,    // the output is written, then the connection closed
    kLingering,  // all is written; what the client still sends is dropped for a moment
    kLost,       // closed or broken; OnLost() follows at the end of the round
  };

  void OnEvents(uint32_t events) override;
  void OnEndOfRound() override;
  void EndAhead();
  void OnTimer();

  void Handshake();
  void AnswerPlainHttp();
  void Open();
  void Read();
  void Write();
  // Writes up to a bound and returns the number of bytes. `blocked`: whether the socket takes no more.
  size_t WriteSome(bool* blocked);
  // Keeps the time of output that waits.
  void TimeOutput(size_t written);
  void BeginToLinger();
  void Linger();
  void Lose();
  void Finish();

  bool Reads() const;
  bool Writes() const;
  void UpdateEvents();
  void Schedule();
  // Tells the group what this connection's place is worth now.
  void Rank();
  void Count(Refusal refusal);
  // Counts the requests that end with the connection.
  void CountCut();
  // Runs `action`; the connection is lost if that throws.
  void Guard(absl::FunctionRef<void()> action);

  ConnectionGroup* const group_;
  ClientSocket socket_;
  ConnectionGroup::Entry entry_;
  std::unique_ptr<Wire> wire_;
  std::unique_ptr<Session> session_;
  Output output_;
  // For the state's own end: of the handshake, of output that waits, of lingering.
  Timer timer_;
  // When output began to wait, or was last found to move fast enough; InfiniteFuture() while none waits.
  absl::Time waiting_since_ = absl::InfiniteFuture();
  // Bytes written since then.
  size_t written_ = 0;
  // Bytes dropped while lingering.
  size_t dropped_ = 0;
  // The events that epoll watches for.
  uint32_t events_ = 0;
  State state_ = State::kHandshake;
  bool reading_paused_ = false;
  // Whether the client has closed its direction.
  bool ended_ = false;
  // Whether Session::OnEndAhead() was called.
  bool ended_ahead_ = false;
  // Whether writing waits for the socket to take more; TLS may wait for that in the handshake and to read,
  // too.
  bool write_blocked_ = false;
  bool read_blocked_ = false;
  // What the end of the round has to do.
  bool scheduled_ = false;
  bool to_write_ = false;
  bool to_read_ = false;
};

}  // namespace saccade::server
