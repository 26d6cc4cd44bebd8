// A client of the front that speaks HTTP/1.1 on virtual time, and behaves well or badly.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "server/net/testing/session_pipe.h"
#include "server/simulation/front/front_peer.h"
#include "server/simulation/front/http1_answers.h"
#include "server/simulation/front/http1_request.h"
#include "server/simulation/random.h"

namespace saccade::server::simulation {

enum class Http1Behaviour {
  kPolite,        // sends at once, reads at once, waits for a 100 that it has asked for
  kTrickle,       // sends a few bytes now and then
  kStallsInHead,  // sends a part of a head, then nothing
  kStallsInBody,  // sends a part of a body, then nothing
  kHalfCloses,    // closes its direction after a part of a request, or after all of it
  kVanishes,      // its connection breaks after a part of a request, or after all of it
  kNeverReads,    // the socket takes little of the answers, then nothing
  kReadsSlowly,   // the socket takes a few bytes of the answers now and then
  kFloods,        // sends one request after the other without waiting for answers
  kGarbage,       // replaces some bytes by random ones
};
inline constexpr int kHttp1Behaviours = 10;

// One request, as the client sees it.
struct Http1Call {
  Http1Request request;
  absl::Time begun;
  // Earlier requests of the connection that had no answer yet.
  int ahead = 0;
  // A 100 has come.
  bool continued = false;
  // Nothing more will come.
  bool ended = false;
  // Nullopt if the connection ended before the answer did.
  std::optional<Http1Answer> answer;
  // The answer to an earlier request has closed the connection, so this one may be sent again.
  bool unprocessed = false;
  // The head of the answer was sent after the drain had begun.
  bool after_drain = false;
};

class Http1Peer final : public FrontPeer {
 public:
  // Makes a connection; null if the server accepts no more.
  using Connect = std::function<std::unique_ptr<SessionPipe>()>;
  Http1Peer(Connect connect, Http1Behaviour behaviour, Random* random, absl::Time now);

  absl::Time next() const override { return next_; }
  void Act(absl::Time now) override;
  SessionPipe* pipe() override { return pipe_.get(); }
  bool is_polite() const override { return behaviour_ == Http1Behaviour::kPolite; }

  // The server is about to drain. What it has sent before that is taken first.
  void OnDrain(absl::Time now);

  Http1Behaviour behaviour() const { return behaviour_; }
  // In the order in which they were sent.
  const std::vector<Http1Call>& calls() const { return calls_; }
  // What a well-behaved client must not see; not filled for kGarbage.
  const std::vector<std::string>& problems() const { return problems_; }
  // Connections that were made.
  int connections() const { return connections_; }

  // A connection that the server ended between two requests, without having announced it.
  struct IdleEnd {
    // When the peer noticed it, and for how long there had been no request then.
    absl::Time at;
    absl::Duration idle;
  };
  const std::vector<IdleEnd>& idle_ends() const { return idle_ends_; }
  // When a peer that stalls has sent its last byte.
  absl::Time stalled_at() const { return silent_since_; }

 private:
  bool has_open_call() const { return first_open_ < calls_.size(); }
  void OpenConnection(absl::Time now);
  // The connection is lost. Makes another one if there are requests left.
  void EndConnection(absl::Time now);
  bool BeginsCall(absl::Time now);
  void BeginCall(absl::Time now);
  // Appends a request, or the part of it after which the peer is silent, to the outbox.
  void Write(const Http1Request& request);
  void Deliver(absl::Time now);
  std::string Garbled(std::string bytes);
  // What follows when the last byte of a peer that falls silent was delivered.
  void FallSilent(absl::Time now);
  void TakeAnswers(absl::Time now);
  void TakeAnswer(Http1Call& call, Http1Answer answer);
  absl::Time NextAct(absl::Time now);
  void Notice(const std::string& what);

  const Connect connect_;
  const Http1Behaviour behaviour_;
  Random& random_;
  absl::Time next_;
  int calls_left_;
  // Number of the request of which only a part is sent.
  size_t silent_call_ = ~size_t{0};
  bool is_silent_ = false;
  absl::Time silent_since_ = absl::InfiniteFuture();
  absl::Time breaks_at_ = absl::InfiniteFuture();
  // A client may be idle between two requests.
  absl::Time idle_until_ = absl::InfinitePast();

  // Null while there is none.
  std::unique_ptr<SessionPipe> pipe_;
  int connections_ = 0;
  Http1Answers answers_;
  std::string outbox_;
  // Bytes of the last request's head that were not delivered.
  size_t head_left_ = 0;
  // The body of the last request, which waits for a 100.
  std::optional<std::string> held_body_;
  // The last request has said that it is the connection's last.
  bool close_asked_ = false;
  // An answer has said that it is the connection's last.
  bool close_announced_ = false;
  absl::Time idle_since_;
  bool drained_ = false;
  // The head of the next answer was sent before the drain.
  bool head_is_older_ = false;

  std::vector<Http1Call> calls_;
  // Index of the first request without an answer.
  size_t first_open_ = 0;
  std::vector<std::string> problems_;
  std::vector<IdleEnd> idle_ends_;
};

}  // namespace saccade::server::simulation
