// Tests of calls that the client retries itself.
#include <gtest/gtest.h>

#include <atomic>

#include "client/cpp/client.h"
#include "client/cpp/testing/connect_to.h"
#include "client/cpp/testing/fake_daemon.h"

namespace saccade::client {
namespace {

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

}  // namespace
}  // namespace saccade::client
