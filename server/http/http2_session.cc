#include "server/http/http2_session.h"

#include <nghttp2/nghttp2.h>
#include <map>

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "server/http/http2_callbacks.h"
#include "server/http/http2_frame_budget.h"
#include "server/http/http2_frame_heads.h"
#include "server/http/http2_frames.h"
#include "server/http/http2_stream.h"

namespace saccade::server {
namespace {

// Decoded bytes of one head, as a multiple of the limit, before the client is disconnected.
constexpr size_t kMaxHeadExcess = 4;
// Time between the announcement of the end (GOAWAY) and refusing new streams, when an old connection ends.
constexpr absl::Duration kGoawayNotice = absl::Seconds(1);

class Http2Session final : public Session, public Http2Streams {
 public:
  Http2Session(Transport* transport, ExchangeHandler* handler, const HttpLimits* limits,
               RefusalCounter* refusals);

  void OnOpen() override;
  void OnBytes(std::string_view bytes) override;
  void OnEnd() override;
  void OnWritable() override { Pump(); }
  void OnLost() override;
  void Drain(absl::Duration grace) override;
  bool IsIdle() const override { return streams_.size() == (awaits_head() ? 1 : 0); }
  size_t open_requests() const override { return streams_.size(); }
  size_t accepted_requests() const override;

  Loop& loop() override { return transport_->loop(); }
  const Peer& peer() const override { return transport_->peer(); }
  void Changed(Http2Stream* stream) override;
  void GrantWindow(int32_t id, uint64_t bytes) override;
  void ResetStream(int32_t id, uint32_t code) override;

  // Called by nghttp2, see Http2CallbacksOf().
  int BeginFrame(const nghttp2_frame_hd& frame);
  int BeginHead(const nghttp2_frame& frame);
  int TakeField(const nghttp2_frame& frame, std::string_view name, std::string_view value);
  int TakeFrame(const nghttp2_frame& frame);
  int TakeInvalidFrame(const nghttp2_frame& frame);
  int TakeData(int32_t id, std::string_view bytes);
  int CloseStream(int32_t id, uint32_t code);
  int SentFrame(const nghttp2_frame& frame);
  ssize_t ReadBody(int32_t id, size_t max, uint32_t* flags);
  int SendFrame(std::string_view bytes);
  int SendData(int32_t id, std::string_view frame_head, size_t size);
  void OnException() { broken_ = true; }

 private:
  // std::map, because Abseil's tables are broken after an allocation that fails while they grow.
  using Streams = std::map<int32_t, std::unique_ptr<Http2Stream>>;

  enum class State {
    kOpen,
    // New streams are ignored. The connection ends with its last stream.
    kClosing,
    // An error, or the idle connection's end, is to be written. The client's bytes are ignored.
    kTerminating,
    // The transport is closed, or closes when its output is written.
    kEnded,
  };

  bool ignores_client() const { return state_ == State::kTerminating || state_ == State::kEnded; }
  // A reset was sent.
  void SentReset(const nghttp2_frame& frame);
  // A request's head has begun and is not complete. Trailers belong to a stream with a receiver.
  bool awaits_head() const { return head_stream_ != nullptr && head_stream_->receiver() == nullptr; }
  bool IsFull() const { return streams_.size() >= static_cast<size_t>(limits_.max_streams); }
  Http2Stream* Find(int32_t id);
  void BeginExchange(Http2Stream& stream);
  void EndHead();
  // Ends the stream for its receiver and forgets it.
  void Finish(int32_t id, bool answered);
  // Gives nghttp2 what the stream has to send.
  void Submit(Http2Stream& stream);

  // Says that the stream ends. What the client has sent before it hears of that is not held against it.
  void ExpectLate(Http2Stream& stream);
  // Judges the DATA frames that nghttp2 has ignored.
  void TakeLateData();

  // Counts a refusal and disconnects the client if it has to be. Returns the result of nghttp2's callback.
  int Apply(FrameBudget::Verdict verdict);
  // Tells the client the error and ends the connection.
  void Terminate(uint32_t code);
  void Abort();
  // Runs `action`; if it throws, the connection ends at once. For what the loop calls, and receivers. What
  // the transport calls is guarded by it.
  void Guard(absl::FunctionRef<void()> action);
  void SchedulePump();
  void Pump();
  void CloseIfDone();
  void BeginIdleTime();

  void OnHeadTimeout();
  void OnIdle();
  void OnSilence();
  void OnAge();
  void OnDrained();
  // Resets the streams whose responses are stalled by the client's windows. A client that reads too slowly
  // from the socket is handled by the connection.
  void EndStalledAnswers();
  // Whether the client's windows keep a part of the answer back.
  bool IsHeld(const Http2Stream& stream) const {
    return static_cast<int64_t>(stream.queued()) > frames_.SendWindow(stream.id());
  }
  void Count(Refusal refusal) {
    if (refusals_ != nullptr) refusals_->Count(refusal);
  }
  void CountCut(size_t requests) {
    if (refusals_ != nullptr) refusals_->CountCut(requests);
  }
  // Counts a malformed connection, unless the reason for its end was counted already.
  void CountMalformed(Refusal refusal = Refusal::kMalformed) {
    if (!std::exchange(counted_end_, true)) Count(refusal);
  }

  Transport* const transport_;
  ExchangeHandler* const handler_;
  const HttpLimits& limits_;
  const absl::Duration idle_timeout_;
  RefusalCounter* const refusals_;
  Http2Frames frames_;
  FrameBudget budget_;
  FrameHeads heads_;
  // The cost (FrameBudget::LateCost) of the DATA frames that were received and that nghttp2 has not begun.
  uint64_t late_cost_ = 0;
  State state_ = State::kOpen;

  Streams streams_;
  // The stream whose request's head has begun and is not complete; null if there is none.
  Http2Stream* head_stream_ = nullptr;
  // Decoded bytes of the head or trailers that are being received, or were last.
  size_t field_bytes_ = 0;
  // Streams with something to submit. Null for those that have ended since.
  std::vector<Http2Stream*> changed_;
  // Expires with this session; posted tasks hold it weakly.
  std::shared_ptr<Http2Session*> self_;

  bool pump_scheduled_ = false;
  // A callback of nghttp2 has thrown.
  bool broken_ = false;
  bool draining_ = false;
  // The connection has passed its maximum age, whether or not it was draining already.
  bool is_too_old_ = false;
  // The reason for the connection's end was counted.
  bool counted_end_ = false;
  bool ping_pending_ = false;
  absl::Time last_received_;
  // When the last stream ended, or the connection was opened.
  absl::Time idle_since_;
  // Bytes of answers moved to the output since EndStalledAnswers() looked last.
  uint64_t moved_ = 0;

  Timer head_timer_;
  // May run too early, because requests do not change it.
  Timer idle_timer_;
  Timer silence_timer_;
  Timer age_timer_;
  Timer transfer_timer_;
  Timer drain_timer_;
};

Http2Session::Http2Session(Transport* transport, ExchangeHandler* handler, const HttpLimits* limits,
                           RefusalCounter* refusals)
    : transport_(transport),
      handler_(handler),
      limits_(*limits),
      idle_timeout_(SpreadIdle(*limits)),
      refusals_(refusals),
      frames_(Http2CallbacksOf<Http2Session>(), this, *limits),
      budget_(*limits),
      self_(std::make_shared<Http2Session*>(this)),
      last_received_(transport->loop().Now()),
      head_timer_(&transport->loop().timers(), [this] { Guard([this] { OnHeadTimeout(); }); }),
      idle_timer_(&transport->loop().timers(), [this] { Guard([this] { OnIdle(); }); }),
      silence_timer_(&transport->loop().timers(), [this] { Guard([this] { OnSilence(); }); }),
      age_timer_(&transport->loop().timers(), [this] { Guard([this] { OnAge(); }); }),
      transfer_timer_(&transport->loop().timers(), [this] { Guard([this] { EndStalledAnswers(); }); }),
      drain_timer_(&transport->loop().timers(), [this] { Guard([this] { OnDrained(); }); }) {}

void Http2Session::OnOpen() {
  frames_.SubmitSettings(limits_);
  if (limits_.max_connection_age != absl::InfiniteDuration())
    age_timer_.Set(loop().Now() + SpreadAge(limits_));
  silence_timer_.Set(loop().Now() + limits_.keepalive_time);
  BeginIdleTime();
  Pump();
}

void Http2Session::OnBytes(std::string_view bytes) {
  if (ignores_client()) return;
  last_received_ = loop().Now();
  ping_pending_ = false;
  heads_.Take(bytes, [this](const nghttp2_frame_hd& head) {
    if (head.type == NGHTTP2_DATA) late_cost_ += FrameBudget::LateCost(head);
  });
  const int failed = frames_.Receive(bytes);
  if (failed != 0 && !ignores_client()) {
    const bool is_flood = failed == NGHTTP2_ERR_FLOODED || failed == NGHTTP2_ERR_TOO_MANY_CONTINUATIONS;
    CountMalformed(failed == NGHTTP2_ERR_FLOODED                  ? Refusal::kControlFrames
                   : failed == NGHTTP2_ERR_TOO_MANY_CONTINUATIONS ? Refusal::kContinuations
                                                                  : Refusal::kMalformed);
    Terminate(is_flood  ? NGHTTP2_ENHANCE_YOUR_CALM
              : broken_ ? NGHTTP2_INTERNAL_ERROR
                        : NGHTTP2_PROTOCOL_ERROR);
    return;
  }
  // Most heads come as a whole and need no timer.
  if (head_stream_ != nullptr && !head_timer_.is_set() && !ignores_client())
    head_timer_.Set(last_received_ + limits_.head_timeout);
  // In this order, because nghttp2 ignores everything after an error that it has found.
  Pump();
  if (!ignores_client()) TakeLateData();
}

void Http2Session::OnEnd() {
  // Half-closed connections are of no use in HTTP/2: no window update can arrive any more.
  Abort();
}

void Http2Session::OnLost() {
  state_ = State::kEnded;
  head_timer_.Cancel();
  idle_timer_.Cancel();
  silence_timer_.Cancel();
  age_timer_.Cancel();
  drain_timer_.Cancel();
  transfer_timer_.Cancel();
  // Allocates nothing: every receiver must hear that it is over.
  while (!streams_.empty()) {
    try {
      Finish(streams_.begin()->first, /*answered=*/false);
    } catch (...) {
      // The others have to hear it as well.
    }
  }
}

void Http2Session::Drain(absl::Duration grace) {
  if (std::exchange(draining_, true)) return;
  frames_.AnnounceEnd();
  drain_timer_.Set(loop().Now() + grace);
  Pump();
}

size_t Http2Session::accepted_requests() const {
  // A stream that was reset has ended already, although the reset may wait to be written.
  return static_cast<size_t>(std::count_if(streams_.begin(), streams_.end(), [](const auto& entry) {
    const Http2Stream& stream = *entry.second;
    return !stream.was_reset && (stream.request_ended() || stream.unsent() > 0);
  }));
}

int Http2Session::BeginFrame(const nghttp2_frame_hd& frame) {
  if (frame.type == NGHTTP2_DATA) late_cost_ -= FrameBudget::LateCost(frame);
  // A new stream and its body are refused or ignored: the client has sent them before it heard that it has
  // too many, or that there will be no more. nghttp2 refuses some without telling of their heads.
  if (frame.type == NGHTTP2_HEADERS && budget_.IsNew(frame.stream_id) &&
      (state_ == State::kClosing || IsFull()))
    budget_.ExpectLate(Exchange::kFirstBodyBytes);
  return Apply(budget_.Take(frame, IsFull(), loop().Now()));
}

int Http2Session::BeginHead(const nghttp2_frame& frame) {
  if (frame.hd.type != NGHTTP2_HEADERS) return 0;
  budget_.UseHead();
  EndHead();
  field_bytes_ = 0;
  const int32_t id = frame.hd.stream_id;
  if (frame.headers.cat != NGHTTP2_HCAT_REQUEST) {
    head_stream_ = Find(id);
    return 0;
  }
  // nghttp2 counts only streams that it has not closed; ours also live until their answers are written.
  if (IsFull()) {
    frames_.SubmitReset(id, NGHTTP2_REFUSED_STREAM);
    return 0;
  }
  head_stream_ = streams_.emplace(id, std::make_unique<Http2Stream>(this, id)).first->second.get();
  if (!transfer_timer_.is_set()) transfer_timer_.Set(loop().Now() + limits_.transfer_grace);
  return 0;
}

int Http2Session::TakeField(const nghttp2_frame& frame, std::string_view name, std::string_view value) {
  // Also of fields that are not used, such as trailers: one byte may refer to a field of thousands, over
  // which nghttp2 goes.
  field_bytes_ += Http2Stream::SizeOfField(name, value);
  if (field_bytes_ > kMaxHeadExcess * limits_.max_head_bytes)
    return Apply({Refusal::kHeadTooLarge, /*disconnect=*/true});
  if (frame.headers.cat != NGHTTP2_HCAT_REQUEST || head_stream_ == nullptr) return 0;
  head_stream_->AddField(name, value, limits_);
  return 0;
}

int Http2Session::TakeFrame(const nghttp2_frame& frame) {
  const bool is_head = frame.hd.type == NGHTTP2_HEADERS;
  if (!is_head && frame.hd.type != NGHTTP2_DATA) return 0;
  if (is_head) EndHead();
  Http2Stream* const stream = Find(frame.hd.stream_id);
  if (stream == nullptr) return 0;
  if (frame.hd.type == NGHTTP2_DATA && (frame.hd.flags & NGHTTP2_FLAG_PADDED) != 0) {
    if (const int failed = Apply(budget_.TakePaddedData(frame.data, loop().Now())); failed != 0)
      return failed;
  }
  const bool ends = (frame.hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;
  if (is_head && frame.headers.cat == NGHTTP2_HCAT_REQUEST) {
    stream->set_has_body(!ends);
    BeginExchange(*stream);
  }
  if (ends) stream->EndRequest();
  return 0;
}

int Http2Session::TakeInvalidFrame(const nghttp2_frame& frame) {
  EndHead();
  CountMalformed();
  if (Http2Stream* const stream = Find(frame.hd.stream_id)) stream->counted_reset = true;
  return Apply(budget_.TakeProvokedReset(loop().Now()));
}

void Http2Session::BeginExchange(Http2Stream& stream) {
  const auto error = stream.CompleteHead(limits_);
  if (!error) {
    stream.set_receiver(handler_->Begin(&stream));
  } else {
    Count(stream.head_too_large() ? Refusal::kHeadTooLarge : Refusal::kMalformed);
    stream.Respond(*error);
  }
  // Many requests may be refused before any answer is written, so their heads are freed now.
  if (stream.ended()) stream.ForgetHead();
}

void Http2Session::EndHead() {
  head_stream_ = nullptr;
  if (head_timer_.is_set()) head_timer_.Cancel();
}

int Http2Session::TakeData(int32_t id, std::string_view bytes) {
  // The connection's window is given back at once, the stream's only by AllowBody().
  frames_.GiveBackWindow(bytes.size());
  Http2Stream* const stream = Find(id);
  if (stream == nullptr || stream->receiver() == nullptr || stream->ended() || stream->was_reset) return 0;
  // nghttp2 still delivers the frame that exceeds the window.
  if (!stream->TakeFromWindow(bytes.size())) return 0;
  stream->receiver()->OnBody({bytes.data(), bytes.size()});
  return 0;
}

int Http2Session::CloseStream(int32_t id, uint32_t code) {
  Http2Stream* const stream = Find(id);
  if (stream == nullptr) return 0;
  if (stream == head_stream_) EndHead();
  stream->closed = true;
  ExpectLate(*stream);
  const bool complete = stream->ended() && stream->queued() == 0 && !stream->was_reset;
  if (!complete || (code != NGHTTP2_NO_ERROR && stream->unsent() > 0)) {
    Finish(id, /*answered=*/false);
    return 0;
  }
  // The end of the answer is in the output. It is answered when that is written.
  transport_->output().OnWritten([this, id] { Finish(id, /*answered=*/true); });
  return 0;
}

int Http2Session::SentFrame(const nghttp2_frame& frame) {
  // nghttp2 ends the connection by itself at most errors.
  if (frame.hd.type == NGHTTP2_GOAWAY && frame.goaway.error_code != NGHTTP2_NO_ERROR) CountMalformed();
  if (frame.hd.type == NGHTTP2_RST_STREAM) SentReset(frame);
  if (frame.hd.type != NGHTTP2_HEADERS && frame.hd.type != NGHTTP2_DATA) return 0;
  budget_.AllowPing();
  if ((frame.hd.flags & NGHTTP2_FLAG_END_STREAM) == 0) return 0;
  Http2Stream* const stream = Find(frame.hd.stream_id);
  // The answer is complete although the request is not: the client need not send the rest.
  if (stream == nullptr || stream->request_ended()) return 0;
  ExpectLate(*stream);
  frames_.SubmitReset(frame.hd.stream_id, NGHTTP2_NO_ERROR);
  return 0;
}

void Http2Session::SentReset(const nghttp2_frame& frame) {
  const uint32_t code = frame.rst_stream.error_code;
  const bool is_clients_fault =
      code == NGHTTP2_PROTOCOL_ERROR || code == NGHTTP2_FLOW_CONTROL_ERROR || code == NGHTTP2_STREAM_CLOSED;
  if (!is_clients_fault || ignores_client()) return;
  // nghttp2 itself resets a stream whose body is not as long as its head says, or exceeds its window, and
  // tells only when it sends that.
  const Http2Stream* const stream = Find(frame.hd.stream_id);
  if (stream != nullptr && stream->counted_reset) return;
  Count(Refusal::kMalformed);
  // The frame was sent, so that is no failure of nghttp2.
  (void)Apply(budget_.TakeProvokedReset(loop().Now()));
}

Http2Stream* Http2Session::Find(int32_t id) {
  const auto found = streams_.find(id);
  return found == streams_.end() ? nullptr : found->second.get();
}

void Http2Session::Finish(int32_t id, bool answered) {
  const auto found = streams_.find(id);
  if (found == streams_.end()) return;
  const std::unique_ptr<Http2Stream> stream = std::move(found->second);
  streams_.erase(found);
  if (stream->changed)
    std::replace(changed_.begin(), changed_.end(), stream.get(), static_cast<Http2Stream*>(nullptr));
  if (stream.get() == head_stream_) EndHead();
  stream->closed = true;
  if (stream->receiver() != nullptr) stream->receiver()->OnOver(answered);
  if (ignores_client() || !streams_.empty()) return;
  BeginIdleTime();
  if (state_ == State::kClosing) SchedulePump();
}

void Http2Session::ExpectLate(Http2Stream& stream) {
  if (std::exchange(stream.expects_late, true) || stream.request_ended()) return;
  budget_.ExpectLate(stream.window_left());
}

void Http2Session::TakeLateData() { Apply(budget_.TakeLateData(std::exchange(late_cost_, 0), loop().Now())); }

int Http2Session::Apply(FrameBudget::Verdict verdict) {
  if (verdict.refusal) Count(*verdict.refusal);
  if (!verdict.disconnect) return 0;
  Terminate(NGHTTP2_ENHANCE_YOUR_CALM);
  return NGHTTP2_ERR_CALLBACK_FAILURE;
}

void Http2Session::Terminate(uint32_t code) {
  if (ignores_client()) return;
  state_ = State::kTerminating;
  counted_end_ = true;
  frames_.Terminate(code);
  // OnBytes() pumps after the callbacks.
  if (!frames_.is_running()) Pump();
}

void Http2Session::Abort() {
  state_ = State::kEnded;
  transport_->Abort();
}

void Http2Session::Guard(absl::FunctionRef<void()> action) {
  try {
    action();
  } catch (...) {
    Abort();
  }
}

void Http2Session::Changed(Http2Stream* stream) {
  if (stream->changed) return;
  changed_.push_back(stream);
  stream->changed = true;
  SchedulePump();
}

void Http2Session::GrantWindow(int32_t id, uint64_t bytes) {
  Guard([&] { frames_.SubmitWindow(id, bytes); });
  SchedulePump();
}

void Http2Session::ResetStream(int32_t id, uint32_t code) {
  if (Http2Stream* const stream = Find(id)) ExpectLate(*stream);
  Guard([&] { frames_.SubmitReset(id, code); });
  SchedulePump();
}

void Http2Session::SchedulePump() {
  // OnBytes() and Pump() send what changes meanwhile.
  if (frames_.is_running() || pump_scheduled_) return;
  Guard([this] {
    loop().Post([weak = std::weak_ptr<Http2Session*>(self_)] {
      if (const auto self = weak.lock()) {
        (*self)->pump_scheduled_ = false;
        (*self)->Guard([&] { (*self)->Pump(); });
      }
    });
    pump_scheduled_ = true;
  });
}

void Http2Session::Submit(Http2Stream& stream) {
  if (stream.closed || stream.was_reset) return;
  if (const auto head = stream.TakeHead()) {
    frames_.SubmitHead(stream.id(), head->status, head->headers, /*has_body=*/!stream.ends_with_head());
  } else if (stream.deferred && (stream.queued() > 0 || stream.ended())) {
    stream.deferred = false;
    frames_.ResumeBody(stream.id());
  }
}

ssize_t Http2Session::ReadBody(int32_t id, size_t max, uint32_t* flags) {
  Http2Stream* const stream = Find(id);
  if (stream == nullptr) return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
  const size_t size = std::min(max, stream->queued());
  const bool is_last = size == stream->queued() && stream->ended();
  *flags |= NGHTTP2_DATA_FLAG_NO_COPY;
  if (size == 0 && !is_last) {
    stream->deferred = true;
    return NGHTTP2_ERR_DEFERRED;
  }
  if (!is_last) return static_cast<ssize_t>(size);
  *flags |= NGHTTP2_DATA_FLAG_EOF;
  if (!stream->trailers().empty()) {
    *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
    if (frames_.SubmitTrailers(id, stream->trailers()) != 0) return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
  }
  return static_cast<ssize_t>(size);
}

int Http2Session::SendFrame(std::string_view bytes) {
  Output& output = transport_->output();
  if (output.size() >= Transport::kHighWater) return NGHTTP2_ERR_WOULDBLOCK;
  output.Copy(bytes);
  return 0;
}

int Http2Session::SendData(int32_t id, std::string_view frame_head, size_t size) {
  Output& output = transport_->output();
  if (output.size() >= Transport::kHighWater) return NGHTTP2_ERR_WOULDBLOCK;
  Http2Stream* const stream = Find(id);
  if (stream == nullptr) return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
  output.Copy(frame_head);
  if (size == 0) return 0;
  stream->MoveBody(size, output);
  moved_ += size;
  // The action is so small that storing it allocates nothing. A frame has less than 2^24 bytes.
  output.OnWritten([this, id, moved = static_cast<uint32_t>(size)] {
    if (Http2Stream* const written = Find(id)) written->Written(moved);
  });
  return 0;
}

void Http2Session::Pump() {
  if (state_ == State::kEnded) return;
  // Submitting changes no stream.
  for (Http2Stream* const stream : changed_) {
    if (stream == nullptr) continue;
    stream->changed = false;
    Submit(*stream);
  }
  changed_.clear();
  if (frames_.Send() != 0) return Abort();
  transport_->Flush();
  // Streams that ended while frames were sent may have made their receivers respond elsewhere.
  if (!changed_.empty()) SchedulePump();
  CloseIfDone();
}

void Http2Session::CloseIfDone() {
  const bool is_done = state_ == State::kTerminating || (state_ == State::kClosing && streams_.empty());
  if (!is_done && !frames_.IsOver()) return;
  state_ = State::kEnded;
  transport_->CloseAfterOutput();
}

void Http2Session::BeginIdleTime() {
  idle_since_ = loop().Now();
  if (!idle_timer_.is_set()) idle_timer_.Set(idle_since_ + idle_timeout_);
}

void Http2Session::OnHeadTimeout() {
  Count(Refusal::kHeadTimeout);
  Terminate(NGHTTP2_ENHANCE_YOUR_CALM);
}

void Http2Session::OnIdle() {
  // BeginIdleTime() sets the timer again.
  if (ignores_client() || !streams_.empty()) return;
  const absl::Time due = idle_since_ + idle_timeout_;
  if (due > loop().Now()) {
    idle_timer_.Set(due);
    return;
  }
  Count(Refusal::kIdleTimeout);
  Terminate(NGHTTP2_NO_ERROR);
}

void Http2Session::OnSilence() {
  if (ping_pending_) return Abort();
  const absl::Time now = loop().Now();
  const absl::Time due = last_received_ + limits_.keepalive_time;
  if (due > now) {
    silence_timer_.Set(due);
    return;
  }
  if (streams_.empty() && !limits_.keepalive_without_calls) {
    silence_timer_.Set(now + limits_.keepalive_time);
    return;
  }
  frames_.SubmitPing();
  budget_.ExpectPong();
  ping_pending_ = true;
  silence_timer_.Set(now + limits_.keepalive_timeout);
  Pump();
}

void Http2Session::OnAge() {
  // The second time, the grace after the age has passed.
  if (std::exchange(is_too_old_, true)) {
    CountCut(accepted_requests());
    return Abort();
  }
  Drain(kGoawayNotice);
  if (limits_.max_connection_age_grace != absl::InfiniteDuration())
    age_timer_.Set(loop().Now() + limits_.max_connection_age_grace);
}

void Http2Session::OnDrained() {
  if (state_ != State::kOpen) return;
  state_ = State::kClosing;
  frames_.EndNewStreams();
  Pump();
}

void Http2Session::EndStalledAnswers() {
  const double needed =
      static_cast<double>(limits_.min_bytes_per_second) * absl::ToDoubleSeconds(limits_.transfer_grace);
  // A client that reads enough in all may read its streams one after the other, but has to begin with each.
  const bool is_slow = static_cast<double>(std::exchange(moved_, 0)) < needed;
  for (const auto& [id, stream] : streams_) {
    if (!stream->HasStalled(IsHeld(*stream), is_slow)) continue;
    Count(Refusal::kStalledDownload);
    CountCut(1);
    stream->Reset(ExchangeError::kTooSlow);
  }
  if (!streams_.empty()) transfer_timer_.Set(loop().Now() + limits_.transfer_grace);
}

}  // namespace

std::unique_ptr<Session> MakeHttp2Session(Transport* transport, ExchangeHandler* handler,
                                          const HttpLimits* limits, RefusalCounter* refusals) {
  return std::make_unique<Http2Session>(transport, handler, limits, refusals);
}

}  // namespace saccade::server
