#include "server/simulation/front/http1_peer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "absl/time/time.h"
#include "server/http/http1_session.h"
#include "server/http/http_limits.h"
#include "server/http/testing/script_handler.h"

namespace saccade::server::simulation {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

class Http1PeerTest : public ::testing::Test {
 protected:
  Http1PeerTest() {
    handler_.on_begin = [](ScriptHandler::Seen& seen) { seen.exchange->AllowBody(1 << 20); };
  }

  void AnswerAll() {
    handler_.on_body_end = [](ScriptHandler::Seen& seen) { seen.Answer(seen.head.path); };
  }

  // A peer in place of an earlier one.
  void Make(uint64_t seed, Http1Behaviour behaviour) {
    peer_.reset();
    handler_.seen.clear();
    random_ = Random(seed);
    const auto connect = [this] {
      auto pipe = std::make_unique<SessionPipe>(&loop_);
      pipe->Open(MakeHttp1Session(pipe.get(), &handler_, &limits_, nullptr));
      return pipe;
    };
    peer_ = std::make_unique<Http1Peer>(connect, behaviour, &random_, loop_.Now());
  }

  // Lets the peer act until `done` is true or it has nothing left to do; at most for some minutes.
  template <typename Done>
  void ActUntil(Done done) {
    const absl::Time end = loop_.Now() + absl::Minutes(5);
    while (!done() && peer_->next() < end) {
      loop_.AdvanceTo(peer_->next());
      peer_->Act(loop_.Now());
    }
  }
  void ActToTheEnd() {
    ActUntil([] { return false; });
  }

  ManualLoop loop_;
  HttpLimits limits_{.idle_timeout = absl::Seconds(30)};
  ScriptHandler handler_;
  Random random_{1};
  std::unique_ptr<Http1Peer> peer_;
};

TEST_F(Http1PeerTest, APoliteClientSeesItsAnswersAndTheEndOfAnIdleConnection) {
  AnswerAll();
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    Make(seed, Http1Behaviour::kPolite);
    ActToTheEnd();
    EXPECT_EQ(peer_->pipe(), nullptr);
    EXPECT_THAT(peer_->problems(), IsEmpty());
    EXPECT_THAT(handler_.seen, SizeIs(peer_->calls().size()));
    size_t asked = 0;
    for (const Http1Call& call : peer_->calls()) {
      ASSERT_TRUE(call.ended && call.answer.has_value());
      EXPECT_EQ(call.answer->status, 200);
      EXPECT_FALSE(call.unprocessed);
      EXPECT_EQ(call.answer->closes, call.request.closes);
      if (call.answer->closes) ++asked;
    }
    // Each connection ended because a request asked for it, or because it was idle.
    EXPECT_EQ(peer_->idle_ends().size() + asked, static_cast<size_t>(peer_->connections()));
    for (const Http1Peer::IdleEnd& idle : peer_->idle_ends()) EXPECT_GE(idle.idle, absl::Seconds(29));
  }
}

TEST_F(Http1PeerTest, ABrokenConnectionLeavesItsRequestWithoutAnAnswer) {
  Make(1, Http1Behaviour::kPolite);
  ActUntil([&] { return !peer_->calls().empty(); });
  peer_->pipe()->Break();
  peer_->Act(loop_.Now());
  const Http1Call& call = peer_->calls()[0];
  EXPECT_TRUE(call.ended);
  EXPECT_FALSE(call.answer.has_value());
  EXPECT_FALSE(call.unprocessed);
}

TEST_F(Http1PeerTest, RequestsBehindAnAnswerThatClosesAreUnprocessed) {
  int found = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Make(seed, Http1Behaviour::kPolite);
    const absl::Time end = loop_.Now() + absl::Seconds(10);
    const auto is_ready = [&] {
      return peer_->calls().size() > 1 && !handler_.seen.empty() && handler_.last().complete;
    };
    ActUntil([&] { return is_ready() || loop_.Now() > end; });
    if (!is_ready()) continue;
    ++found;
    peer_->OnDrain(loop_.Now());
    peer_->pipe()->session()->Drain(absl::Seconds(1));
    handler_.last().Answer("last");
    loop_.RunUntilIdle();
    peer_->Act(loop_.Now());
    const std::vector<Http1Call>& calls = peer_->calls();
    ASSERT_TRUE(calls[0].answer.has_value());
    EXPECT_TRUE(calls[0].answer->closes);
    EXPECT_TRUE(calls[0].after_drain);
    EXPECT_TRUE(calls[1].ended);
    EXPECT_TRUE(calls[1].unprocessed);
    EXPECT_THAT(peer_->problems(), IsEmpty());
  }
  EXPECT_GT(found, 5);
}

TEST_F(Http1PeerTest, AnAnswerWhoseHeadIsOlderThanTheDrainNeedsNoAnnouncement) {
  Make(1, Http1Behaviour::kPolite);
  ActUntil([&] { return !handler_.seen.empty() && handler_.last().complete; });
  ASSERT_FALSE(handler_.seen.empty());
  Exchange* const exchange = handler_.last().exchange;
  exchange->SendHead(200, {});
  loop_.RunUntilIdle();
  peer_->OnDrain(loop_.Now());
  peer_->pipe()->session()->Drain(absl::Seconds(1));
  exchange->End({});
  loop_.RunUntilIdle();
  peer_->Act(loop_.Now());
  ASSERT_TRUE(peer_->calls()[0].answer.has_value());
  EXPECT_FALSE(peer_->calls()[0].answer->closes);
  EXPECT_FALSE(peer_->calls()[0].after_drain);
}

TEST_F(Http1PeerTest, ClientsThatStallSendAPartOfARequest) {
  AnswerAll();
  int timed_out = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Make(seed, Http1Behaviour::kStallsInHead);
    ActToTheEnd();
    EXPECT_THAT(peer_->problems(), IsEmpty());
    EXPECT_EQ(handler_.seen.size() + 1, peer_->calls().size());
    const Http1Call& last = peer_->calls().back();
    if (last.answer.has_value() && last.answer->status == 408) ++timed_out;
    Make(seed, Http1Behaviour::kStallsInBody);
    ActUntil([&] { return peer_->stalled_at() <= loop_.Now(); });
    if (peer_->stalled_at() > loop_.Now()) continue;
    ActUntil([&] { return handler_.seen.size() == peer_->calls().size(); });
    EXPECT_FALSE(handler_.last().complete);
  }
  EXPECT_EQ(timed_out, 20);
}

}  // namespace
}  // namespace saccade::server::simulation
