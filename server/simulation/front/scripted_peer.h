// A client of the front that speaks gRPC over HTTP/2 on virtual time, and behaves well or badly.
#pragma once

#include <nghttp2/nghttp2.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "server/http/testing/frames.h"
#include "server/net/testing/session_pipe.h"
#include "server/simulation/front/front_peer.h"
#include "server/simulation/random.h"

namespace saccade::server::simulation {

enum class Behaviour {
  kPolite,      // sends at once, reads at once
  kTrickle,     // sends a few bytes now and then
  kStall,       // stops sending in the middle of something
  kReset,       // resets streams at random times
  kVanish,      // its connection breaks at a random time
  kNeverReads,  // the socket takes little of the answers, then nothing
  kTinyWindow,  // gives the answers a window of few bytes at a time
  kGarbage,     // replaces some bytes by random ones
};
inline constexpr int kBehaviours = 8;

// Most messages have less bytes.
inline constexpr int64_t kMaxSmallMessage = 500;

// One call, as the client sees it.
struct PeerCall {
  bool streaming = false;
  // All of its messages have less than kMaxSmallMessage bytes.
  bool is_small = true;
  // Calls of the same client that were open when this one began.
  int others_open = 0;
  // The bytes that the peer sent, which the echo must equal.
  std::string sent;
  std::string received;
  bool ended = false;
  // -1: the call ended without one, by a reset.
  int status = -1;
  // The server has said that it did not process the call, so it may be repeated elsewhere.
  bool unprocessed = false;
  absl::Time begun;
};

class ScriptedPeer final : public FrontPeer {
 public:
  // REQUIRES: `pipe` is open.
  ScriptedPeer(std::unique_ptr<SessionPipe> pipe, Behaviour behaviour, Random* random, absl::Time now);
  ~ScriptedPeer() override;

  ScriptedPeer(const ScriptedPeer&) = delete;
  ScriptedPeer& operator=(const ScriptedPeer&) = delete;

  absl::Time next() const override { return next_; }
  void Act(absl::Time now) override;
  SessionPipe* pipe() override { return pipe_.get(); }
  bool is_polite() const override { return behaviour_ == Behaviour::kPolite; }

  const std::map<uint32_t, PeerCall>& calls() const { return calls_; }

 private:
  struct Upload {
    uint32_t stream;
    std::string bytes;
    bool ends = true;
  };

  void BeginCall(absl::Time now);
  // Turns uploads into frames, as far as the windows permit.
  void FillOutbox();
  void Deliver();
  void TakeAnswers(absl::Time now);
  void TakeFrame(const Frame& frame);
  void TakeHead(const Frame& frame);
  void EndStream(uint32_t stream);
  void ResetSome();

  const std::unique_ptr<SessionPipe> pipe_;
  const Behaviour behaviour_;
  Random& random_;
  absl::Time next_;
  absl::Time vanishes_ = absl::InfiniteFuture();
  int calls_left_;
  uint32_t next_stream_ = 1;
  bool goaway_ = false;
  int64_t connection_window_ = 65535;
  int64_t initial_window_ = 65535;
  std::map<uint32_t, int64_t> windows_;
  std::vector<Upload> uploads_;
  std::string outbox_;
  std::string inbox_;
  size_t stalls_after_ = ~size_t{0};
  size_t delivered_ = 0;
  std::map<uint32_t, PeerCall> calls_;
  nghttp2_hd_inflater* inflater_ = nullptr;
};

}  // namespace saccade::server::simulation
