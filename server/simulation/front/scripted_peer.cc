#include "server/simulation/front/scripted_peer.h"

#include <algorithm>
#include <utility>

namespace saccade::server::simulation {
namespace {

constexpr size_t kFrameBytes = 16384;
constexpr uint32_t kSettingInitialWindow = 4;

std::string Prefixed(const std::string& message) { return '\0' + BigEndian(message.size(), 4) + message; }

}  // namespace

ScriptedPeer::ScriptedPeer(std::unique_ptr<SessionPipe> pipe, Behaviour behaviour, Random* random,
                           absl::Time now)
    : pipe_(std::move(pipe)), behaviour_(behaviour), random_(*random), next_(now) {
  calls_left_ = 1 + static_cast<int>(random_.Below(12));
  outbox_ = std::string(kPreface);
  if (behaviour_ == Behaviour::kTinyWindow) {
    outbox_ += SettingsFrame(Setting(kSettingInitialWindow, 1 + static_cast<uint32_t>(random_.Below(50))));
  } else {
    outbox_ += SettingsFrame();
  }
  if (behaviour_ == Behaviour::kVanish) vanishes_ = now + absl::Milliseconds(random_.Below(3000));
  if (behaviour_ == Behaviour::kStall) stalls_after_ = static_cast<size_t>(random_.Below(200'000));
  if (behaviour_ == Behaviour::kNeverReads) pipe_->LimitRoom(static_cast<size_t>(random_.Below(4096)));
  nghttp2_hd_inflate_new(&inflater_);
}

ScriptedPeer::~ScriptedPeer() { nghttp2_hd_inflate_del(inflater_); }

void ScriptedPeer::Act(absl::Time now) {
  if (pipe_->lost()) {
    for (auto& [stream, call] : calls_) call.ended = true;
    next_ = absl::InfiniteFuture();
    return;
  }
  if (now >= vanishes_) {
    pipe_->Break();
    next_ = now;
    return;
  }
  if (calls_left_ > 0 && !goaway_ && random_.Chance(0.3)) BeginCall(now);
  if (behaviour_ == Behaviour::kReset && random_.Chance(0.2)) ResetSome();
  FillOutbox();
  Deliver();
  TakeAnswers(now);
  next_ = now + absl::Milliseconds(1 + random_.Below(behaviour_ == Behaviour::kTrickle ? 300 : 40));
}

void ScriptedPeer::BeginCall(absl::Time now) {
  --calls_left_;
  const uint32_t stream = next_stream_;
  next_stream_ += 2;
  const auto open =
      std::count_if(calls_.begin(), calls_.end(), [](const auto& one) { return !one.second.ended; });
  PeerCall& call = calls_[stream];
  call.others_open = static_cast<int>(open);
  call.begun = now;
  call.streaming = random_.Chance(0.4);
  windows_[stream] = initial_window_;
  Fields head = PostFields(call.streaming ? "/echo.Echo/Stream" : "/echo.Echo/Unary");
  head.emplace_back("content-type", "application/grpc");
  head.emplace_back("te", "trailers");
  outbox_ += HeadersFrame(stream, head, kEndHeaders);
  const int messages = call.streaming ? static_cast<int>(random_.Below(5)) : 1;
  std::string bytes;
  for (int i = 0; i < messages; ++i) {
    const int64_t most = random_.Chance(0.2) ? 300'000 : kMaxSmallMessage;
    const int64_t size = random_.Below(most);
    if (size >= kMaxSmallMessage) call.is_small = false;
    bytes += Prefixed(RandomText(random_, size));
  }
  call.sent = bytes;
  uploads_.push_back({stream, std::move(bytes)});
}

void ScriptedPeer::FillOutbox() {
  for (auto upload = uploads_.begin(); upload != uploads_.end();) {
    int64_t& window = windows_[upload->stream];
    bool done = false;
    while (!done) {
      const int64_t room = std::min(window, connection_window_);
      const size_t size =
          std::min({upload->bytes.size(), kFrameBytes, static_cast<size_t>(std::max<int64_t>(room, 0))});
      if (size == 0 && !upload->bytes.empty()) break;
      done = size == upload->bytes.size();
      outbox_ += DataFrame(upload->stream, upload->bytes.substr(0, size), done);
      upload->bytes.erase(0, size);
      window -= static_cast<int64_t>(size);
      connection_window_ -= static_cast<int64_t>(size);
    }
    upload = done ? uploads_.erase(upload) : upload + 1;
  }
}

void ScriptedPeer::Deliver() {
  size_t size = outbox_.size();
  if (behaviour_ == Behaviour::kTrickle)
    size = std::min<size_t>(size, 1 + static_cast<size_t>(random_.Below(40)));
  size = std::min(size, stalls_after_ - std::min(stalls_after_, delivered_));
  if (size == 0) return;
  std::string bytes = outbox_.substr(0, size);
  outbox_.erase(0, size);
  delivered_ += size;
  if (behaviour_ == Behaviour::kGarbage && random_.Chance(0.2))
    bytes[static_cast<size_t>(random_.Below(static_cast<int64_t>(size)))] = static_cast<char>(random_.Bits());
  SendInPieces(*pipe_, bytes, random_);
}

void ScriptedPeer::TakeAnswers(absl::Time /*now*/) {
  inbox_ += pipe_->TakeOutput();
  constexpr size_t kHead = 9;
  size_t used = 0;
  for (const Frame& frame : FramesIn(inbox_)) {
    used += kHead + frame.payload.size();
    TakeFrame(frame);
  }
  inbox_.erase(0, used);
}

void ScriptedPeer::TakeFrame(const Frame& frame) {
  const auto call = calls_.find(frame.stream);
  const bool ends = (frame.flags & kEndStream) != 0;
  switch (frame.type) {
    case kSettings:
      if ((frame.flags & kAck) != 0) return;
      outbox_ += BytesOf({kSettings, kAck, 0, ""});
      return;
    case kPing:
      if ((frame.flags & kAck) == 0) outbox_ += BytesOf({kPing, kAck, 0, frame.payload});
      return;
    case kWindowUpdate: {
      const int64_t more = NumberAt(frame.payload, 0, 4);
      (frame.stream == 0 ? connection_window_ : windows_[frame.stream]) += more;
      return;
    }
    case kGoaway:
      goaway_ = true;
      for (auto& [stream, ended] : calls_) {
        if (stream <= NumberAt(frame.payload, 0, 4) || ended.ended) continue;
        ended.unprocessed = true;
        EndStream(stream);
      }
      return;
    case kRstStream:
      if (call == calls_.end() || call->second.ended) return;
      if (NumberAt(frame.payload, 0, 4) == kRefusedStream) call->second.unprocessed = true;
      EndStream(frame.stream);
      return;
    case kData: {
      if (call != calls_.end()) call->second.received += frame.payload;
      const auto size = static_cast<uint32_t>(frame.payload.size());
      if (size > 0 && behaviour_ != Behaviour::kNeverReads)
        outbox_ += WindowFrame(0, size) + (ends ? "" : WindowFrame(frame.stream, size));
      break;
    }
    case kHeaders:
      TakeHead(frame);
      break;
    default:
      return;
  }
  if (ends) EndStream(frame.stream);
}

void ScriptedPeer::TakeHead(const Frame& frame) {
  const auto* in = reinterpret_cast<const uint8_t*>(frame.payload.data());
  size_t left = frame.payload.size();
  for (;;) {
    nghttp2_nv field{};
    int flags = 0;
    const ssize_t used = nghttp2_hd_inflate_hd2(inflater_, &field, &flags, in, left, 1);
    if (used < 0) break;
    in += used;
    left -= static_cast<size_t>(used);
    if ((flags & NGHTTP2_HD_INFLATE_EMIT) != 0) {
      const std::string name(reinterpret_cast<const char*>(field.name), field.namelen);
      const std::string value(reinterpret_cast<const char*>(field.value), field.valuelen);
      if (name == "grpc-status") calls_[frame.stream].status = std::stoi(value);
    }
    if ((flags & NGHTTP2_HD_INFLATE_FINAL) != 0) break;
  }
  nghttp2_hd_inflate_end_headers(inflater_);
}

void ScriptedPeer::EndStream(uint32_t stream) {
  const auto call = calls_.find(stream);
  if (call != calls_.end()) call->second.ended = true;
  uploads_.erase(std::remove_if(uploads_.begin(), uploads_.end(),
                                [stream](const Upload& upload) { return upload.stream == stream; }),
                 uploads_.end());
}

void ScriptedPeer::ResetSome() {
  for (auto& [stream, call] : calls_) {
    if (call.ended || !random_.Chance(0.3)) continue;
    outbox_ += ResetFrame(stream, kCancel);
    EndStream(stream);
  }
}

}  // namespace saccade::server::simulation
