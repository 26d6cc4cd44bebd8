#include "server/security/token_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace saccade::server {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;

constexpr char kToken[] = "0123456789abcdef-._~+/==";

std::string Said(absl::string_view text) {
  return std::string(ParseTokenFile("--token-file t", text).status().message());
}

TEST(TokenFileTest, ReadsTokensAndScopes) {
  const auto tokens = ParseTokenFile(
      "t", absl::StrCat("# who\n\n  ", kToken, "\tpredict,metrics \r\n", "another-token-of-enough admin"));
  ASSERT_TRUE(tokens.ok()) << tokens.status();
  ASSERT_THAT(*tokens, SizeIs(2));
  EXPECT_EQ((*tokens)[0].digest, DigestOf(kToken));
  EXPECT_EQ((*tokens)[0].scopes, static_cast<int>(Scope::kPredict) | static_cast<int>(Scope::kMetrics));
  EXPECT_EQ((*tokens)[1].scopes, static_cast<int>(Scope::kAdmin));
}

TEST(TokenFileTest, ATokenMayBeLimitedToModels) {
  const auto tokens =
      ParseTokenFile("t", absl::StrCat(kToken, " predict:a,b\nanother-token-of-enough metrics,predict:c"));
  ASSERT_TRUE(tokens.ok()) << tokens.status();
  EXPECT_EQ((*tokens)[0].scopes, static_cast<int>(Scope::kPredict));
  EXPECT_THAT((*tokens)[0].models, testing::ElementsAre("a", "b"));
  EXPECT_EQ((*tokens)[1].scopes, static_cast<int>(Scope::kPredict) | static_cast<int>(Scope::kMetrics));
  EXPECT_THAT((*tokens)[1].models, testing::ElementsAre("c"));
  for (const char* word :
       {"predict:", "predict:a,", "predict:,a", "root,predict:a", ",predict:a", "admin:a"}) {
    EXPECT_THAT(Said(absl::StrCat(kToken, " ", word)), HasSubstr("not a list of scopes")) << word;
  }
}

TEST(TokenFileTest, ATokenMayHaveLimits) {
  const auto tokens = ParseTokenFile("t", absl::StrCat(kToken,
                                                       " predict:a,b rate=2.5 inflight=8\n"
                                                       "another-token-of-enough\tmetrics  inflight=1"));
  ASSERT_TRUE(tokens.ok()) << tokens.status();
  EXPECT_THAT((*tokens)[0].models, testing::ElementsAre("a", "b"));
  EXPECT_EQ((*tokens)[0].requests_per_second, 2.5);
  EXPECT_EQ((*tokens)[0].max_requests, 8);
  EXPECT_EQ((*tokens)[1].requests_per_second, 0);
  EXPECT_EQ((*tokens)[1].max_requests, 1);
}

TEST(TokenFileTest, LimitsThatAreNone) {
  for (const char* rate : {"", "0", "-1", "nan", "inf", "1e7", "0.0001", "5/s", "5,inflight=3"}) {
    EXPECT_THAT(Said(absl::StrCat(kToken, " predict rate=", rate)),
                HasSubstr("the value of rate= is not a number from 0.001 to 1e+06"))
        << rate;
  }
  for (const char* requests : {"", "0", "-1", "1.5", "1000001", "99999999999999999999"}) {
    EXPECT_THAT(Said(absl::StrCat(kToken, " predict inflight=", requests)),
                HasSubstr("the value of inflight= is not an integer from 1 to 1000000"))
        << requests;
  }
  EXPECT_THAT(Said(absl::StrCat(kToken, " predict rate=1 rate=2")), HasSubstr("has rate= twice"));
  EXPECT_THAT(Said(absl::StrCat(kToken, " predict inflight=1 inflight=2")), HasSubstr("has inflight= twice"));
  EXPECT_THAT(Said(absl::StrCat(kToken, " predict Rate=1")), HasSubstr("is not a limit"));
  EXPECT_THAT(Said(absl::StrCat(kToken, " rate=1 predict")), HasSubstr("not a list of scopes"));
}

TEST(TokenFileTest, TellsTheLineAndWhatIsWrong) {
  EXPECT_THAT(Said("# nobody\n"), HasSubstr("contains no token"));
  EXPECT_THAT(Said(absl::StrCat("\n", kToken)),
              HasSubstr("--token-file t line 2: has 1 word; expected 'TOKEN SCOPE"));
  EXPECT_THAT(Said(absl::StrCat(kToken, " predict admin")),
              HasSubstr("line 1: a word after the scopes is not a limit; expected 'TOKEN SCOPE"));
  EXPECT_THAT(Said("short predict"), HasSubstr("the token has 5 characters, expected 16 to 512"));
  EXPECT_THAT(Said(absl::StrCat(std::string(513, 'a'), " predict")), HasSubstr("513 characters"));
  EXPECT_THAT(Said("\"0123456789abcdef\" predict"), HasSubstr("invalid characters"));
  EXPECT_THAT(Said(absl::StrCat("0123456789abcdef", std::string(1, '\0'), " predict")),
              HasSubstr("invalid characters"));
  for (const char* scopes : {"root", "predict,", ",predict", "predict,,admin", "open"}) {
    EXPECT_THAT(Said(absl::StrCat(kToken, " ", scopes)), HasSubstr("not a list of scopes")) << scopes;
  }
  EXPECT_THAT(Said(absl::StrCat(kToken, " predict\n\n", kToken, " admin")),
              HasSubstr("line 3: the token is a duplicate of line 1"));
}

TEST(TokenFileTest, NoMessageHoldsAToken) {
  for (const std::string& text : {absl::StrCat("predict ", kToken), absl::StrCat("predict-and-more ", kToken),
                                  absl::StrCat(kToken, " nothing"), std::string(kToken),
                                  absl::StrCat("another-token-of-enough predict ", kToken),
                                  absl::StrCat("another-token-of-enough predict rate=", kToken)}) {
    EXPECT_THAT(Said(text), Not(HasSubstr("0123456789"))) << text;
  }
}

TEST(TokenFileTest, ThereAreNotMoreThanSoMany) {
  std::string text;
  for (size_t i = 0; i < kMaxTokens; ++i) absl::StrAppend(&text, "0123456789abcdef", i, " predict\n");
  EXPECT_THAT(ParseTokenFile("t", text).value(), SizeIs(kMaxTokens));
  absl::StrAppend(&text, kToken, " predict\n");
  EXPECT_THAT(Said(text), HasSubstr("line 1001: more than 1000 tokens"));
}

}  // namespace
}  // namespace saccade::server
