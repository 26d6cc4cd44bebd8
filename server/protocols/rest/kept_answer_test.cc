#include "server/protocols/rest/kept_answer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/core/fake_clock.h"
#include "server/http/content_coding.h"

namespace saccade::server {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::Key;
using ::testing::Not;
using ::testing::Pair;

class KeptAnswerTest : public ::testing::Test {
 protected:
  absl::StatusOr<HttpResponse> Ask(uint64_t generation, const std::string& accepted = "") {
    HttpRequest request;
    if (!accepted.empty()) request.headers = {{"accept-encoding", accepted}};
    return kept_.Get(request, generation, &clock_, [this]() -> absl::StatusOr<std::string> {
      ++made_;
      if (!error_.ok()) return error_;
      return absl::StrCat("text ", made_, std::string(1000, ' '));
    });
  }

  FakeClock clock_;
  KeptAnswer kept_;
  // Guarded by the answer's lock.
  int made_ = 0;
  absl::Status error_;
};

TEST_F(KeptAnswerTest, ATextIsMadeOnceForItsGenerationAndTime) {
  const std::string first = Ask(1)->body;
  clock_.Advance(KeptAnswer::kMaxAge - absl::Nanoseconds(1));
  EXPECT_EQ(Ask(1)->body, first);
  EXPECT_EQ(made_, 1);
  clock_.Advance(absl::Nanoseconds(1));
  EXPECT_NE(Ask(1)->body, first) << "it is too old";
  EXPECT_EQ(made_, 2);
  const std::string second = Ask(2)->body;
  EXPECT_EQ(made_, 3) << "what it tells has changed";
  // A request that has read its generation before another one, which came first.
  EXPECT_EQ(Ask(1)->body, second);
  EXPECT_EQ(made_, 3);
}

TEST_F(KeptAnswerTest, ATextIsCompressedOnce) {
  const auto plain = Ask(1);
  EXPECT_THAT(plain->headers, Not(Contains(Key("content-encoding"))));
  const auto gzip = Ask(1, "deflate, gzip");
  EXPECT_THAT(gzip->headers, Contains(Pair("content-encoding", "gzip")));
  EXPECT_THAT(gzip->headers, Contains(Pair("vary", "Accept-Encoding")));
  EXPECT_LT(gzip->body.size(), 200u);
  std::string decoded;
  ContentDecoder decoder(ContentCoding::kGzip);
  const auto append = [&decoded](absl::string_view bytes) {
    decoded.append(bytes.data(), bytes.size());
    return true;
  };
  ASSERT_TRUE(decoder.Write(gzip->body, append).ok());
  EXPECT_EQ(decoded, plain->body);
  EXPECT_EQ(made_, 1);
  // The front would compress these for each request.
  EXPECT_FALSE(plain->compressible);
  EXPECT_FALSE(gzip->compressible);
  EXPECT_EQ(Ask(1, "deflate")->body, plain->body);
  // The old text's gzip is not kept for the new one.
  EXPECT_NE(Ask(2, "gzip")->body, gzip->body);
}

TEST_F(KeptAnswerTest, AnErrorIsNotKept) {
  error_ = absl::InternalError("no");
  EXPECT_EQ(Ask(1).status(), error_);
  error_ = absl::OkStatus();
  EXPECT_TRUE(Ask(1).ok());
}

TEST_F(KeptAnswerTest, ThreadsMakeOneTextTogether) {
  std::vector<std::string> bodies(8);
  std::vector<std::thread> threads;
  for (std::string& body : bodies) threads.emplace_back([this, &body] { body = Ask(1, "gzip")->body; });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(made_, 1);
  EXPECT_THAT(bodies, Each(bodies[0]));
}

}  // namespace
}  // namespace saccade::server
