#include "server/net/connection.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <exception>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/logging/log.h"

namespace saccade::server {
namespace {

// Written in one round, so that one connection does not keep the others waiting.
constexpr size_t kMaxWritten = size_t{1} << 20;
constexpr size_t kMaxPieces = 64;
constexpr size_t kMaxLingerBytes = size_t{1} << 20;
constexpr absl::Duration kLingerTime = absl::Milliseconds(500);

// Tells a client of HTTP, who asked a port of TLS in plain text, what is wrong.
std::string PlainHttpAnswer() {
  constexpr absl::string_view kBody = R"({"error":"this port speaks TLS; ask https:// of it"})";
  return absl::StrCat("HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\nContent-Length: ",
                      kBody.size(), "\r\nConnection: close\r\n\r\n", kBody);
}

}  // namespace

Connection::Connection(ConnectionGroup* group, ClientSocket socket)
    : group_(group),
      socket_(std::move(socket)),
      timer_(&group->loop().timers(), [this] { Guard([this] { OnTimer(); }); }) {}

Connection::~Connection() = default;

void Connection::Start() {
  Guard([this] {
    const PortOptions& options = group_->options();
    wire_ = options.tls ? MakeTlsWire(socket_.fd(), options.tls().get()) : MakePlainWire(socket_.fd());
    events_ = EPOLLIN;
    const bool watched = group_->loop().Watch(socket_.fd(), events_, this);
    if (wire_ == nullptr || !watched) return Lose();
    if (!options.tls) return Open();
    timer_.Set(loop().Now() + options.handshake_timeout);
  });
  Rank();
}

void Connection::Drain(absl::Duration grace) {
  if (state_ != State::kOpen) return;
  Guard([&] { session_->Drain(grace); });
  Rank();
}

void Connection::Evict() {
  Lose();
  Rank();
}

void Connection::Flush() {
  if (!Writes()) return;
  // With nothing to write, a round would only ask the session for more, and the session has just asked.
  if (state_ == State::kOpen && output_.empty()) return;
  to_write_ = true;
  Schedule();
}

void Connection::PauseReading(bool pause) {
  if (state_ == State::kLost) return;
  reading_paused_ = pause;
  if (!pause && wire_->has_received()) {
    to_read_ = true;
    Schedule();
  }
  UpdateEvents();
}

void Connection::CloseAfterOutput() {
  if (state_ != State::kOpen) return;
  state_ = State::kClosing;
  Flush();
  UpdateEvents();
}

void Connection::Abort() { Lose(); }

void Connection::OnEvents(uint32_t events) {
  Guard([&] {
    const bool broken = (events & (EPOLLERR | EPOLLHUP)) != 0;
    if (state_ == State::kHandshake) return group_->RunHandshake([this] { Handshake(); });
    if (state_ == State::kLingering) return Linger();
    // Nothing can be written to a broken connection, so only what it still has to be read counts.
    if (broken && !Reads()) return Lose();
    if ((events & EPOLLRDHUP) != 0 && !Reads()) return EndAhead();
    const bool readable = (events & EPOLLIN) != 0 || broken;
    const bool writable = (events & EPOLLOUT) != 0;
    if (Reads() && (readable || (writable && read_blocked_))) Read();
    if (writable) Write();
  });
  Rank();
}

// While nothing is read, only this tells that the client has gone.
void Connection::EndAhead() {
  if (state_ != State::kOpen || std::exchange(ended_ahead_, true)) return;
  session_->OnEndAhead();
  UpdateEvents();
}

void Connection::OnTimer() {
  if (state_ == State::kLingering) return Lose();
  if (state_ == State::kHandshake) {
    Count(Refusal::kHandshakeTimeout);
    return Lose();
  }
  const double needed = static_cast<double>(group_->options().min_bytes_per_second) *
                        absl::ToDoubleSeconds(loop().Now() - waiting_since_);
  if (static_cast<double>(written_) < needed) {
    Count(Refusal::kStalledDownload);
    CountCut();
    return Lose();
  }
  waiting_since_ = loop().Now();
  written_ = 0;
  timer_.Set(waiting_since_ + group_->options().write_grace);
}

void Connection::OnEndOfRound() {
  scheduled_ = false;
  if (state_ == State::kLost) return Finish();
  Guard([this] {
    if (std::exchange(to_write_, false)) Write();
    if (std::exchange(to_read_, false) && Reads()) Read();
  });
  Rank();
}

void Connection::Handshake() {
  Await await = Await::kNothing;
  if (wire_->Handshake(&await) == 0) return Open();
  if (await != Await::kNothing) {
    read_blocked_ = await == Await::kWritable;
    return UpdateEvents();
  }
  timer_.Cancel();
  // Lingering makes sure that the client gets to know the reason.
  if (wire_->met_plain_http()) {
    wire_ = MakePlainWire(socket_.fd());
    output_.Copy(PlainHttpAnswer());
    state_ = State::kClosing;
    Write();
  } else {
    BeginToLinger();
  }
}

void Connection::Open() {
  timer_.Cancel();
  read_blocked_ = false;
  state_ = State::kOpen;
  session_ = group_->options().make_session(this);
  if (session_ == nullptr) return Lose();
  session_->OnOpen();
  if (state_ == State::kOpen && group_->drain_grace()) session_->Drain(*group_->drain_grace());
  if (state_ == State::kLost) return;
  // The first bytes may have come together with the end of the handshake.
  if (wire_->has_received()) {
    to_read_ = true;
    Schedule();
  }
  UpdateEvents();
}

void Connection::Read() {
  const absl::Span<char> buffer = group_->buffer();
  size_t received = 0;
  while (Reads() && received < buffer.size()) {
    Await await = Await::kNothing;
    const size_t room = std::min(buffer.size() - received, session_->max_read());
    const ssize_t got = wire_->Receive(buffer.data(), room, &await);
    if (got < 0) {
      if (await == Await::kNothing) return Lose();
      read_blocked_ = await == Await::kWritable;
      return UpdateEvents();
    }
    read_blocked_ = false;
    if (got == 0) {
      ended_ = true;
      session_->OnEnd();
      break;
    }
    received += static_cast<size_t>(got);
    session_->OnBytes({buffer.data(), static_cast<size_t>(got)});
    // The socket is empty, or epoll tells again that it is not.
    if (!wire_->has_received()) break;
  }
  if (state_ == State::kLost) return;
  if (Reads() && wire_->has_received()) {
    to_read_ = true;
    Schedule();
  }
  UpdateEvents();
}

void Connection::Write() {
  if (!Writes()) return;
  bool blocked = false;
  const size_t written = WriteSome(&blocked);
  if (state_ == State::kLost) return;
  write_blocked_ = blocked;
  if (!blocked && !output_.empty()) Flush();
  TimeOutput(written);
  if (state_ == State::kClosing && output_.empty()) return BeginToLinger();
  if (state_ == State::kOpen && written > 0 && output_.size() < kLowWater) session_->OnWritable();
  UpdateEvents();
}

size_t Connection::WriteSome(bool* blocked) {
  size_t written = 0;
  std::array<iovec, kMaxPieces> pieces;
  while (!output_.empty() && written < kMaxWritten && state_ != State::kLost) {
    const size_t count = output_.Peek(absl::MakeSpan(pieces));
    size_t offered = 0;
    for (size_t i = 0; i < count; ++i) offered += pieces[i].iov_len;
    Await await = Await::kNothing;
    const ssize_t sent = wire_->Send(absl::MakeSpan(pieces.data(), count), &await);
    if (sent < 0) {
      if (await == Await::kNothing) Lose();
      *blocked = true;
      break;
    }
    written += static_cast<size_t>(sent);
    output_.Consume(static_cast<size_t>(sent));
    // A socket that takes less than it could is full. TLS takes one record at a time.
    if (!peer().is_tls && static_cast<size_t>(sent) < offered) {
      *blocked = true;
      break;
    }
  }
  return written;
}

void Connection::TimeOutput(size_t written) {
  if (output_.empty()) {
    if (std::exchange(waiting_since_, absl::InfiniteFuture()) != absl::InfiniteFuture()) timer_.Cancel();
  } else if (waiting_since_ == absl::InfiniteFuture()) {
    waiting_since_ = loop().Now();
    written_ = 0;
    timer_.Set(waiting_since_ + group_->options().write_grace);
  } else {
    written_ += written;
  }
}

void Connection::BeginToLinger() {
  wire_->EndSending();
  shutdown(socket_.fd(), SHUT_WR);
  if (ended_) return Lose();
  state_ = State::kLingering;
  timer_.Set(loop().Now() + kLingerTime);
  UpdateEvents();
}

void Connection::Linger() {
  const absl::Span<char> buffer = group_->buffer();
  const ssize_t got = recv(socket_.fd(), buffer.data(), buffer.size(), MSG_DONTWAIT);
  if (got == 0 || (got < 0 && !IsTransient(errno))) return Lose();
  dropped_ += static_cast<size_t>(std::max<ssize_t>(got, 0));
  if (dropped_ >= kMaxLingerBytes) Lose();
}

void Connection::Lose() {
  if (state_ == State::kLost) return;
  state_ = State::kLost;
  timer_.Cancel();
  group_->loop().Unwatch(socket_.fd(), this);
  Schedule();
}

void Connection::Finish() {
  if (session_ != nullptr) {
    Guard([this] { session_->OnLost(); });
  }
  // Actions of the output may refer to the session, so they are destroyed first.
  Guard([this] { output_.Clear(); });
  session_.reset();
  group_->Remove(this);
}

bool Connection::Reads() const { return state_ == State::kOpen && !reading_paused_ && !ended_; }

bool Connection::Writes() const { return state_ == State::kOpen || state_ == State::kClosing; }

void Connection::UpdateEvents() {
  if (state_ == State::kLost) return;
  const bool reads = Reads() || state_ == State::kHandshake || state_ == State::kLingering;
  const bool awaits_end = state_ == State::kOpen && reading_paused_ && !ended_ && !ended_ahead_;
  const uint32_t events = (reads ? EPOLLIN : 0U) | (awaits_end ? EPOLLRDHUP : 0U) |
                          (write_blocked_ || read_blocked_ ? EPOLLOUT : 0U);
  if (events != std::exchange(events_, events)) group_->loop().Change(socket_.fd(), events, this);
}

void Connection::Schedule() {
  if (scheduled_) return;
  scheduled_ = true;
  group_->loop().AtEndOfRound(this);
}

void Connection::Rank() {
  using Rank = ConnectionGroup::Rank;
  // A connection that is closed anyway makes no room.
  if (state_ == State::kClosing || state_ == State::kLost) return group_->SetRank(this, Rank::kBusy);
  const bool idle = session_ == nullptr || session_->IsIdle();
  if (!idle) entry_.has_served = true;
  group_->SetRank(this, !idle ? Rank::kBusy : entry_.has_served ? Rank::kIdle : Rank::kNew);
}

void Connection::Count(Refusal refusal) {
  if (group_->options().refusals != nullptr) group_->options().refusals->Count(refusal);
}

void Connection::CountCut() {
  if (group_->options().refusals == nullptr || session_ == nullptr) return;
  group_->options().refusals->CountCut(session_->accepted_requests());
}

void Connection::Guard(absl::FunctionRef<void()> action) {
  try {
    action();
  } catch (const std::exception& error) {
    Log(LogLevel::kError, "a connection failed and is closed", {{"error", absl::string_view(error.what())}});
    Lose();
  } catch (...) {
    Log(LogLevel::kError, "a connection failed and is closed");
    Lose();
  }
}

}  // namespace saccade::server
