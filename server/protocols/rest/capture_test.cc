#include "server/protocols/capture_headers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "server/protocols/rest/capture.h"

namespace saccade::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

// `now` with what the JSON changes.
absl::StatusOr<CaptureChoice> ChangedChoice(const CaptureChoice& now, absl::string_view text) {
  auto change = CaptureChangeOf(text);
  if (!change.ok()) return change.status();
  return WithChange(now, *std::move(change));
}

TEST(CaptureHeaders, OnlyThoseThatDescribeTheBodyAreKept) {
  const HttpHeaders headers = {{"Authorization", "Bearer s3cret"},
                               {"Content-Type", "image/jpeg"},
                               {"Cookie", "session=s3cret"},
                               {"X-Api-Key", "s3cret"},
                               {"X-Request-Id", "42"},
                               {"Inference-Header-Content-Length", "17"}};
  EXPECT_THAT(CapturedHeaders(headers),
              ElementsAre(Pair("content-type", "image/jpeg"), Pair("inference-header-content-length", "17")));
}

TEST(CaptureHeaders, ParametersNamedLikeSecretsLoseTheirValues) {
  HttpRequest request;
  request.path = "/v1/predict/cat";
  EXPECT_EQ(CapturedTarget(request), "/v1/predict/cat");
  request.query = "top_k=3&access_token=s3cret&API_KEY=s3cret&password=s3cret&labels=a=b&to%6ben=s3cret&x";
  EXPECT_EQ(CapturedTarget(request),
            "/v1/predict/"
            "cat?top_k=3&access_token=REMOVED&API_KEY=REMOVED&password=REMOVED&labels=a=b&to%6ben=REMOVED&x");
}

TEST(CaptureRest, TheBodyChangesWhatItNames) {
  const CaptureChoice now = {.enabled = true, .rate = 0.5, .models = {{"cat", 1.0}}};
  const auto paused = ChangedChoice(now, R"({"enabled": false})");
  ASSERT_TRUE(paused.ok()) << paused.status();
  EXPECT_FALSE(paused->enabled);
  EXPECT_EQ(paused->rate, 0.5);
  EXPECT_EQ(paused->models.at("cat"), 1.0);
  const auto others = ChangedChoice(now, R"({"rate": 0, "models": {"dog": 0.25}})");
  ASSERT_TRUE(others.ok()) << others.status();
  EXPECT_EQ(others->rate, 0);
  EXPECT_THAT(others->models, ElementsAre(Pair("dog", 0.25)));
}

// The choice may name 4,096 models, and what a request brings may be a mebibyte.
TEST(CaptureRest, RequestsRunOnThePool) {
  RetryJitter jitter(1);
  const auto routes = CaptureRoutes(/*capture=*/nullptr, &jitter);
  ASSERT_EQ(routes.size(), 2u);
  for (const HttpRoute& route : routes) EXPECT_TRUE(route.may_block) << route.method;
}

TEST(CaptureRest, NamesOfModelsAreBounded) {
  const auto named = [](size_t bytes) {
    return CaptureChangeOf(absl::StrCat(R"({"models": {")", std::string(bytes, 'm'), R"(": 1}})")).status();
  };
  EXPECT_TRUE(named(1024).ok()) << named(1024);
  EXPECT_TRUE(absl::IsInvalidArgument(named(1025))) << named(1025);
  EXPECT_THAT(std::string(named(1025).message()),
              HasSubstr("models: has a name of 1025 bytes; at most 1024 are accepted"));
}

TEST(CaptureRest, ValuesAreCountedBeforeTheyAreParsed) {
  std::string body = "{";
  for (int i = 0; i < 90000; ++i) absl::StrAppend(&body, i > 0 ? "," : "", "\"", absl::Hex(i), "\":0");
  const auto changed = ChangedChoice({}, body + "}");
  EXPECT_TRUE(absl::IsInvalidArgument(changed.status())) << changed.status();
  EXPECT_THAT(std::string(changed.status().message()), HasSubstr("values"));
}

TEST(CaptureRest, WrongBodiesAreErrorsThatNameTheMember) {
  const auto error = [](const char* body) {
    const auto changed = ChangedChoice({}, body);
    EXPECT_TRUE(absl::IsInvalidArgument(changed.status())) << body;
    return std::string(changed.status().message());
  };
  EXPECT_THAT(error(""), HasSubstr("expected a JSON object"));
  EXPECT_THAT(error("[1]"), HasSubstr("expected a JSON object"));
  EXPECT_THAT(error(R"({"enabled": 1})"), HasSubstr("enabled: expected true or false"));
  EXPECT_THAT(error(R"({"rate": "1"})"), HasSubstr("rate: expected a number"));
  EXPECT_THAT(error(R"({"rate": 2})"), HasSubstr("rate is 2; expected a share from 0 to 1"));
  EXPECT_THAT(error(R"({"models": [1]})"), HasSubstr("models: expected an object"));
  EXPECT_THAT(error(R"({"models": {"cat": true}})"), HasSubstr("'cat': expected a number"));
  EXPECT_THAT(error(R"({"models": {"cat": 7}})"), HasSubstr("the rate of model 'cat' is 7"));
  EXPECT_THAT(error(R"({"folder": "/etc"})"), HasSubstr("'folder': is unknown"));
  std::string many = R"({"models": {"m": 1)";
  for (int i = 0; i < 4096; ++i) absl::StrAppend(&many, ",\"", i, "\":0");
  EXPECT_THAT(error((many + "}}").c_str()), HasSubstr("models: names 4097 models; at most 4096"));
}

}  // namespace
}  // namespace saccade::server
