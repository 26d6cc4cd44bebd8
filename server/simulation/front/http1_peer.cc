#include "server/simulation/front/http1_peer.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace saccade::server::simulation {
namespace {

// Requests that a client sends ahead of their answers.
constexpr size_t kMaxPipelined = 4;
constexpr int kFloodCalls = 60;

// Behaviours that leave one request incomplete, or do something else after it.
bool FallsSilent(Http1Behaviour behaviour) {
  return behaviour == Http1Behaviour::kStallsInHead || behaviour == Http1Behaviour::kStallsInBody ||
         behaviour == Http1Behaviour::kHalfCloses || behaviour == Http1Behaviour::kVanishes;
}

}  // namespace

Http1Peer::Http1Peer(Connect connect, Http1Behaviour behaviour, Random* random, absl::Time now)
    : connect_(std::move(connect)), behaviour_(behaviour), random_(*random), next_(now), idle_since_(now) {
  calls_left_ = behaviour_ == Http1Behaviour::kFloods ? kFloodCalls : 1 + static_cast<int>(random_.Below(12));
  if (FallsSilent(behaviour_)) silent_call_ = static_cast<size_t>(random_.Below(calls_left_));
  OpenConnection(now);
}

void Http1Peer::OpenConnection(absl::Time now) {
  pipe_ = connect_();
  answers_ = Http1Answers();
  outbox_.clear();
  held_body_.reset();
  close_asked_ = close_announced_ = head_is_older_ = false;
  idle_since_ = now;
  if (pipe_ == nullptr) return;
  ++connections_;
  if (behaviour_ == Http1Behaviour::kNeverReads) pipe_->LimitRoom(static_cast<size_t>(random_.Below(4096)));
  if (behaviour_ == Http1Behaviour::kReadsSlowly) pipe_->LimitRoom(0);
}

void Http1Peer::Act(absl::Time now) {
  if (pipe_ == nullptr) {
    next_ = absl::InfiniteFuture();
    return;
  }
  if (now >= breaks_at_) pipe_->Break();
  if (behaviour_ == Http1Behaviour::kReadsSlowly)
    pipe_->GiveRoom(1 + static_cast<size_t>(random_.Below(3000)));
  TakeAnswers(now);
  if (!pipe_->lost() && BeginsCall(now)) BeginCall(now);
  Deliver(now);
  TakeAnswers(now);
  if (close_announced_ && !pipe_->lost()) Notice("the connection stays open after Connection: close");
  if (pipe_->lost()) EndConnection(now);
  next_ = NextAct(now);
}

void Http1Peer::OnDrain(absl::Time now) {
  TakeAnswers(now);
  drained_ = true;
  head_is_older_ = answers_.has_head();
}

absl::Time Http1Peer::NextAct(absl::Time now) {
  if (pipe_ == nullptr) return absl::InfiniteFuture();
  constexpr absl::Duration kLook = absl::Milliseconds(500);
  if (is_silent_) return std::min(now + kLook, breaks_at_);
  if (!has_open_call() && calls_left_ == 0) return now + kLook;
  if (!has_open_call() && now < idle_until_) return std::min(now + kLook, idle_until_);
  return now + absl::Milliseconds(1 + random_.Below(behaviour_ == Http1Behaviour::kTrickle ? 300 : 40));
}

bool Http1Peer::BeginsCall(absl::Time now) {
  if (calls_left_ == 0 || is_silent_ || held_body_ || close_asked_ || close_announced_) return false;
  // The next request comes after all bytes of the one before.
  if (!outbox_.empty() || now < idle_until_) return false;
  const size_t open = calls_.size() - first_open_;
  return open == 0 || behaviour_ == Http1Behaviour::kFloods || (open < kMaxPipelined && random_.Chance(0.3));
}

void Http1Peer::BeginCall(absl::Time now) {
  --calls_left_;
  Http1Call call;
  call.request = DrawHttp1Request(random_);
  call.begun = now;
  call.ahead = static_cast<int>(calls_.size() - first_open_);
  close_asked_ = call.request.closes;
  Write(call.request);
  calls_.push_back(std::move(call));
  if (random_.Chance(0.4)) idle_until_ = now + absl::Milliseconds(random_.Below(3000));
  // Long enough for the server to close the connection.
  if (random_.Chance(0.03)) idle_until_ = now + absl::Seconds(35);
}

void Http1Peer::Write(const Http1Request& request) {
  head_left_ = request.head.size();
  const std::string bytes = request.head + request.body;
  if (behaviour_ == Http1Behaviour::kPolite && request.expects_continue) {
    outbox_ += request.head;
    held_body_ = request.body;
    return;
  }
  const bool needs_body = behaviour_ == Http1Behaviour::kStallsInBody;
  if (calls_.size() < silent_call_ || (needs_body && request.body.empty())) {
    outbox_ += bytes;
    return;
  }
  is_silent_ = true;
  const auto draw = [this](size_t below) {
    return static_cast<size_t>(random_.Below(static_cast<int64_t>(below)));
  };
  size_t size = draw(bytes.size() + 1);
  if (behaviour_ == Http1Behaviour::kStallsInHead) size = 1 + draw(request.head.size() - 1);
  if (behaviour_ == Http1Behaviour::kStallsInBody) size = request.head.size() + draw(request.body.size());
  outbox_ += bytes.substr(0, size);
}

void Http1Peer::Deliver(absl::Time now) {
  if (held_body_ && has_open_call() && calls_.back().continued)
    outbox_ += *std::exchange(held_body_, std::nullopt);
  size_t size = outbox_.size();
  if (behaviour_ == Http1Behaviour::kTrickle)
    size = std::min(size, random_.Chance(0.5) ? size_t{1} : 1 + static_cast<size_t>(random_.Below(40)));
  std::string bytes = outbox_.substr(0, size);
  outbox_.erase(0, size);
  head_left_ -= std::min(head_left_, size);
  if (behaviour_ == Http1Behaviour::kGarbage) bytes = Garbled(std::move(bytes));
  SendInPieces(*pipe_, bytes, random_);
  if (is_silent_ && outbox_.empty() && silent_since_ == absl::InfiniteFuture()) FallSilent(now);
}

// Changes up to three bytes, half of them where heads are.
std::string Http1Peer::Garbled(std::string bytes) {
  if (bytes.empty() || !random_.Chance(0.4)) return bytes;
  for (int64_t left = 1 + random_.Below(3); left > 0; --left) {
    const auto size = static_cast<int64_t>(bytes.size());
    const int64_t at = random_.Below(random_.Chance(0.5) ? std::min<int64_t>(size, 100) : size);
    bytes[static_cast<size_t>(at)] = static_cast<char>(random_.Bits());
  }
  return bytes;
}

void Http1Peer::FallSilent(absl::Time now) {
  silent_since_ = now;
  if (behaviour_ == Http1Behaviour::kHalfCloses && !pipe_->lost()) pipe_->EndSending();
  if (behaviour_ == Http1Behaviour::kVanishes) breaks_at_ = now + absl::Milliseconds(random_.Below(300));
}

void Http1Peer::TakeAnswers(absl::Time now) {
  if (pipe_ == nullptr) return;
  answers_.Add(pipe_->TakeOutput());
  while (has_open_call() && !close_announced_) {
    Http1Call& call = calls_[first_open_];
    // To a server that has seen only a part of it, the request is no HEAD.
    const bool is_known = head_left_ == 0 || &call != &calls_.back();
    auto answer = answers_.Take(is_known && call.request.kind == Http1Kind::kHead);
    if (!answer) break;
    if (answer->status == 100) {
      if (!call.request.expects_continue || std::exchange(call.continued, true))
        Notice("a 100 came that was not asked for");
      continue;
    }
    TakeAnswer(call, *std::move(answer));
    ++first_open_;
    idle_since_ = now;
  }
  if (!answers_.malformed().empty()) Notice(absl::StrCat("the answer is malformed: ", answers_.malformed()));
  if ((!has_open_call() || close_announced_) && !answers_.empty()) Notice("bytes came after the last answer");
}

void Http1Peer::TakeAnswer(Http1Call& call, Http1Answer answer) {
  call.ended = true;
  call.after_drain = drained_ && !std::exchange(head_is_older_, false);
  close_announced_ = answer.closes;
  // The server must not take the next request for the body that it has not got.
  if (held_body_ && !answer.closes && &call == &calls_.back())
    Notice("the connection stays open without the body of a request");
  call.answer = std::move(answer);
}

void Http1Peer::EndConnection(absl::Time now) {
  if (!has_open_call() && !close_announced_) idle_ends_.push_back({now, now - idle_since_});
  for (; has_open_call(); ++first_open_) {
    calls_[first_open_].ended = true;
    calls_[first_open_].unprocessed = close_announced_;
  }
  pipe_.reset();
  if (calls_left_ > 0 && !is_silent_) OpenConnection(now);
}

void Http1Peer::Notice(const std::string& what) {
  // Such a client may have asked for anything.
  if (behaviour_ != Http1Behaviour::kGarbage && problems_.size() < 3) problems_.push_back(what);
}

}  // namespace saccade::server::simulation
