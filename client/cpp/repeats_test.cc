// Tests of calls that the client retries itself, and of daemons that vanish.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <limits>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/cpp/client.h"
#include "client/cpp/testing/connect_to.h"
#include "client/cpp/testing/fake_daemon.h"

namespace saccade::client {
namespace {

// Accepts one connection over HTTP/2 and answers nothing on it, as a machine that vanished.
class SilentDaemon {
 public:
  SilentDaemon() : listening_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    EXPECT_EQ(bind(listening_, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(listen(listening_, 1), 0);
    EXPECT_EQ(getsockname(listening_, reinterpret_cast<sockaddr*>(&address), &size), 0);
    url_ = absl::StrCat("127.0.0.1:", ntohs(address.sin_port));
    thread_ = std::thread([this] {
      connection_ = accept(listening_, nullptr, nullptr);
      if (connection_ < 0) return ADD_FAILURE() << "no client has connected";
      // Empty SETTINGS, without which a client would not use the connection.
      const char settings[9] = {0, 0, 0, 4};
      EXPECT_EQ(send(connection_, settings, sizeof settings, MSG_NOSIGNAL), 9);
    });
  }
  ~SilentDaemon() {
    thread_.join();
    close(connection_);
    close(listening_);
  }

  const std::string& url() const { return url_; }

 private:
  const int listening_;
  int connection_ = -1;
  std::string url_;
  std::thread thread_;
};

TEST(Client, GivesUpAConnectionWhosePingsAreNotAnswered) {
  const SilentDaemon daemon;
  const absl::Time begin = absl::Now();
  const auto answer = ConnectTo(daemon.url(), {.timeout = absl::Minutes(2), .keepalive = absl::Seconds(1)})
                          ->Classify("sanet", "x");
  EXPECT_EQ(answer.status().code(), absl::StatusCode::kUnavailable) << answer.status();
  EXPECT_LT(absl::Now() - begin, absl::Seconds(20)) << "one second to the ping, five for its answer";
}

TEST(Client, DoesNotRetryUnlessAsked) {
  FakeDaemon daemon;
  std::atomic<int> calls = 0;
  daemon.SetPredict([&](const FakeRequest&) -> absl::StatusOr<Classification> {
    if (++calls == 1) return absl::UnavailableError("loading");
    return Classification();
  });
  EXPECT_EQ(ConnectTo(daemon.url())->Classify("sanet", "x").status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(calls, 1);

  calls = 0;
  const auto answer = ConnectTo(daemon.url(), {.retry = true})->Classify("sanet", "x");
  EXPECT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(calls, 2);
}

// gRPC's own bound for calls that it retries is 256 KiB.
TEST(Client, RetriesLargePictures) {
  FakeDaemon daemon;
  std::atomic<int> calls = 0;
  const std::string picture(1 << 20, 'x');
  daemon.SetPredict([&](const FakeRequest& request) -> absl::StatusOr<Classification> {
    EXPECT_EQ(request.picture, picture);
    if (++calls == 1) return absl::UnavailableError("loading");
    return Classification();
  });
  for (const int64_t max_message_bytes : {int64_t{2} << 20, int64_t{std::numeric_limits<int>::max()}}) {
    calls = 0;
    const auto client = ConnectTo(daemon.url(), {.max_message_bytes = max_message_bytes, .retry = true});
    const auto answer = client->Classify("sanet", picture);
    EXPECT_TRUE(answer.ok()) << answer.status();
    EXPECT_EQ(calls, 2);
  }
}

// gRPC would hold what they have sent.
TEST(Client, DoesNotRetryStreams) {
  FakeDaemon daemon;
  daemon.SetPredict([](const FakeRequest&) { return Classification(); });
  const auto client = ConnectTo(daemon.url(), {.retry = true});
  const auto stream = client->OpenStream();
  ASSERT_TRUE(stream.ok()) << stream.status();
  ASSERT_TRUE((*stream)->Classify("sanet", "x", {}).ok());
  const auto item = (*stream)->Next();
  ASSERT_TRUE(item.ok()) << item.status();
  EXPECT_TRUE((*item)->answer.ok());

  daemon.FailWith(absl::UnavailableError("draining"));
  const absl::Status restored = client->Restore("denoise", VolumeFrom("x")).status();
  EXPECT_EQ(restored.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(restored.message(), "draining");
  EXPECT_EQ(daemon.restores(), 1);
}

TEST(Client, RetriesCallsThatTheServerCancelled) {
  FakeDaemon daemon;
  std::atomic<int> calls = 0;
  daemon.SetPredict([&](const FakeRequest&) -> absl::StatusOr<Classification> {
    if (++calls < 3) return absl::CancelledError("the port is closing");
    return Classification();
  });
  EXPECT_EQ(ConnectTo(daemon.url())->Classify("sanet", "x").status().code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(calls, 1);
  const auto answer = ConnectTo(daemon.url(), {.retry = true})->Classify("sanet", "x");
  EXPECT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(calls, 3);

  daemon.SetPredict([&](const FakeRequest&) -> absl::StatusOr<Classification> {
    ++calls;
    return absl::CancelledError("the port is closing");
  });
  calls = 0;
  EXPECT_EQ(ConnectTo(daemon.url(), {.retry = true})->Classify("sanet", "x").status().code(),
            absl::StatusCode::kCancelled);
  EXPECT_EQ(calls, 4);
}

TEST(Client, StopsRetryingWhileMostCallsFail) {
  FakeDaemon daemon;
  std::atomic<int> attempts = 0;
  std::atomic<bool> broken = true;
  daemon.SetPredict([&](const FakeRequest&) -> absl::StatusOr<Classification> {
    ++attempts;
    if (broken) return absl::UnavailableError("loading");
    return Classification();
  });
  const auto client = ConnectTo(daemon.url(), {.retry = true});
  constexpr int kCalls = 100;
  for (int call = 0; call < kCalls; ++call) EXPECT_FALSE(client->Classify("sanet", "x").ok());
  // Half of the hundred tokens pay for retries; without them there would be four attempts for each call.
  EXPECT_LE(attempts, kCalls + 50);
  EXPECT_GE(attempts, kCalls + 30);

  broken = false;
  for (int call = 0; call < 600; ++call) ASSERT_TRUE(client->Classify("sanet", "x").ok());
  broken = true;
  attempts = 0;
  EXPECT_FALSE(client->Classify("sanet", "x").ok());
  EXPECT_GT(attempts, 1) << "successes have filled the budget again";
}

TEST(Client, RefusesPingsThatAreTooFrequent) {
  const auto client = Client::Connect({.keepalive = absl::Milliseconds(10)});
  EXPECT_EQ(client.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(client.status().message(), "keepalive is 10ms; expected at least 1s");
  EXPECT_TRUE(Client::Connect({.keepalive = absl::InfiniteDuration()}).ok());
}

}  // namespace
}  // namespace saccade::client
