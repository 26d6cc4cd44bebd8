#include "server/http/http_session.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/http/testing/frames.h"
#include "server/http/testing/script_handler.h"
#include "server/http/testing/test_service.h"

namespace saccade::server {
namespace {

using ::testing::EndsWith;
using ::testing::StartsWith;

class HttpSessionTest : public ::testing::Test {
 protected:
  void Connect(const std::string& alpn = "") {
    handler_.on_body_end = [](ScriptHandler::Seen& seen) { seen.Answer("text"); };
    pipe_ = std::make_unique<SessionPipe>(&loop_, Peer{"127.0.0.1", true, !alpn.empty()}, alpn);
    pipe_->Open(MakeHttpSession(pipe_.get(), &handler_, &limits_, &refusals_));
  }

  // An HTTP/2 server begins with its SETTINGS.
  static bool IsHttp2(const std::string& output) {
    return output.size() > 9 && output[3] == static_cast<char>(kSettings);
  }

  ManualLoop loop_;
  HttpLimits limits_;
  ScriptHandler handler_;
  RefusalCounts refusals_;
  std::unique_ptr<SessionPipe> pipe_;
};

TEST_F(HttpSessionTest, ThePrefaceMakesItHttp2) {
  Connect();
  pipe_->Send(std::string(kPreface) + SettingsFrame());
  EXPECT_TRUE(IsHttp2(pipe_->TakeOutput()));
  Connect();
  for (const char byte : std::string(kPreface) + SettingsFrame()) pipe_->Send(std::string(1, byte));
  EXPECT_TRUE(IsHttp2(pipe_->TakeOutput()));
}

TEST_F(HttpSessionTest, AnythingElseIsHttp1) {
  for (const std::string method : {"GET", "POST", "PUT", "PRIORITY"}) {
    for (const size_t piece : {1, 2, 100}) {
      Connect();
      const std::string request = method + " /a HTTP/1.1\r\nHost: a\r\n\r\n";
      for (size_t at = 0; at < request.size(); at += piece) pipe_->Send(request.substr(at, piece));
      EXPECT_THAT(pipe_->TakeOutput(), EndsWith("text"));
      EXPECT_EQ(handler_.last().head.method, method);
    }
  }
  Connect();
  pipe_->Send("PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n");
  EXPECT_THAT(pipe_->TakeOutput(), StartsWith("HTTP/1.1 505 "));
}

TEST_F(HttpSessionTest, AlpnDecides) {
  Connect("h2");
  EXPECT_TRUE(IsHttp2(pipe_->TakeOutput()));
  Connect("http/1.1");
  pipe_->Send(std::string(kPreface));
  EXPECT_THAT(pipe_->TakeOutput(), StartsWith("HTTP/1.1 505 "));
}

TEST_F(HttpSessionTest, TheFirstByteBeginsTheHeadTimeout) {
  limits_.head_timeout = absl::Seconds(10);
  limits_.idle_timeout = absl::Seconds(60);
  Connect();
  loop_.Advance(absl::Seconds(30));
  pipe_->Send("PR");
  loop_.Advance(absl::Seconds(9));
  EXPECT_FALSE(pipe_->closing());
  loop_.Advance(absl::Seconds(1));
  EXPECT_TRUE(pipe_->closed());
  EXPECT_EQ(refusals_.Of(Refusal::kHeadTimeout), 1);
  // Also if it turns out to be HTTP/1.1 later.
  Connect();
  pipe_->Send("P");
  loop_.Advance(absl::Seconds(9));
  pipe_->Send("OST /a");
  loop_.Advance(absl::Seconds(1));
  EXPECT_THAT(pipe_->TakeOutput(), StartsWith("HTTP/1.1 408 "));
  EXPECT_EQ(refusals_.Of(Refusal::kHeadTimeout), 2);
}

TEST_F(HttpSessionTest, ASilentConnectionIsClosed) {
  limits_.idle_timeout = absl::Seconds(60);
  Connect();
  EXPECT_TRUE(pipe_->session()->IsIdle());
  EXPECT_EQ(pipe_->session()->open_requests(), 0u);
  loop_.Advance(absl::Seconds(59));
  EXPECT_FALSE(pipe_->closing());
  loop_.Advance(absl::Seconds(1));
  EXPECT_TRUE(pipe_->closed());
  EXPECT_EQ(refusals_.Of(Refusal::kIdleTimeout), 1);
  Connect();
  pipe_->EndSending();
  EXPECT_TRUE(pipe_->closed());
}

TEST_F(HttpSessionTest, ADrainReachesTheVersionThatIsChosenLater) {
  Connect();
  pipe_->session()->Drain(absl::Seconds(5));
  pipe_->Send("GET /a HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_THAT(pipe_->TakeOutput(), testing::HasSubstr("\r\nConnection: close\r\n"));
  EXPECT_TRUE(pipe_->closed());
  Connect();
  pipe_->session()->Drain(absl::Seconds(5));
  loop_.Advance(absl::Seconds(4));
  EXPECT_FALSE(pipe_->closing());
  loop_.Advance(absl::Seconds(1));
  EXPECT_TRUE(pipe_->closed());
  EXPECT_EQ(refusals_.Of(Refusal::kIdleTimeout), 0);
}

}  // namespace
}  // namespace saccade::server
