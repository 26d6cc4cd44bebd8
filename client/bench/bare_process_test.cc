// In a test program of its own: the process must be forked before anything here has used gRPC.
#include "client/bench/bare_process.h"

#include <gtest/gtest.h>

#include "client/load/unary_calls.h"

namespace saccade::client {
namespace {

TEST(BareProcess, ServesInAnotherProcessUntilItIsDestroyed) {
  const std::string answer = "\x0a\x05sanet";
  std::string url;
  {
    const BareProcess never_started;
    BareProcess process;
    const auto started = process.Start(answer, "");
    ASSERT_TRUE(started.ok()) << started.status();
    url = *started;
    EXPECT_EQ(*CallOnce(url, Method::kPredict, RawRequest("any", 2, 2)), answer);
  }
  EXPECT_EQ(CallOnce(url, Method::kPredict, "").status().code(), absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace saccade::client
