#include "server/security/tokens.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>

namespace saccade::server {
namespace {

using testing::HasSubstr;

constexpr char kUser[] = "user-0123456789abcdef";
constexpr char kAdmin[] = "admin-0123456789abcdef";

class TokensTest : public testing::Test {
 protected:
  TokensTest() {
    std::string name = testing::TempDir() + "tokensXXXXXX";
    close(mkstemp(name.data()));
    path_ = name;
    Write(absl::StrCat(kUser, " predict\n", kAdmin, " predict,admin\n"));
    tokens_ = Tokens::Open(path_).value();
  }
  ~TokensTest() override { std::remove(path_.c_str()); }

  void Write(const std::string& text) const { std::ofstream(path_) << text; }
  void LookTwice() const {
    tokens_->Look();
    tokens_->Look();
  }
  absl::StatusCode Code(absl::string_view authorization,
                        std::optional<Scope> needed = Scope::kPredict) const {
    return tokens_->Check({authorization}, needed).code();
  }
  absl::StatusCode WithToken(absl::string_view token, std::optional<Scope> needed = Scope::kPredict) const {
    return Code(absl::StrCat("Bearer ", token), needed);
  }

  std::string path_;
  std::unique_ptr<Tokens> tokens_;
};

TEST_F(TokensTest, ATokenIsGoodForItsScopes) {
  EXPECT_EQ(WithToken(kUser), absl::StatusCode::kOk);
  EXPECT_EQ(WithToken(kUser, Scope::kAdmin), absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(WithToken(kAdmin, Scope::kAdmin), absl::StatusCode::kOk);
  EXPECT_EQ(WithToken(kAdmin, Scope::kMetrics), absl::StatusCode::kPermissionDenied);
}

TEST_F(TokensTest, WithoutAKnownTokenNobodyIsKnown) {
  EXPECT_EQ(tokens_->Check({}, Scope::kPredict).code(), absl::StatusCode::kUnauthenticated);
  for (const std::string& wrong :
       {std::string(kUser), absl::StrCat("Bearer", kUser), absl::StrCat("Basic ", kUser),
        std::string("Bearer "), std::string("Bearer"), std::string(), absl::StrCat("Bearer ", kUser, "0"),
        absl::StrCat("Bearer ", kUser, ",", kAdmin), absl::StrCat("Bearer ", std::string(100'000, 'a'))}) {
    EXPECT_EQ(Code(wrong), absl::StatusCode::kUnauthenticated) << wrong.substr(0, 100);
  }
  EXPECT_EQ(Code(absl::StrCat("bearer  ", kUser, " ")), absl::StatusCode::kOk)
      << "as RFC 7235 lets it be written";
}

TEST_F(TokensTest, TwoTokensAreNone) {
  const std::string good = absl::StrCat("Bearer ", kUser);
  const std::vector<absl::string_view> both = {good, good};
  EXPECT_EQ(tokens_->Check(both, Scope::kPredict).code(), absl::StatusCode::kUnauthenticated);
}

TEST_F(TokensTest, WhatNobodyClassifiedIsForNobody) {
  EXPECT_EQ(WithToken(kAdmin, std::nullopt), absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(tokens_->Check({}, std::nullopt).code(), absl::StatusCode::kUnauthenticated);
}

TEST_F(TokensTest, WhatIsOpenNeedsNone) { EXPECT_TRUE(tokens_->Check({}, Scope::kOpen).ok()); }

TEST_F(TokensTest, AChangedFileIsTaken) {
  Write(absl::StrCat(kAdmin, " predict\n"));
  LookTwice();
  EXPECT_EQ(WithToken(kUser), absl::StatusCode::kUnauthenticated);
  EXPECT_EQ(WithToken(kAdmin, Scope::kAdmin), absl::StatusCode::kPermissionDenied);
}

TEST_F(TokensTest, AWrongOneLeavesWhatWas) {
  Write("not a list of tokens");
  LookTwice();
  EXPECT_EQ(WithToken(kUser), absl::StatusCode::kOk);
  std::remove(path_.c_str());
  LookTwice();
  EXPECT_EQ(WithToken(kUser), absl::StatusCode::kOk);
  Write(absl::StrCat(kAdmin, " admin\n"));
  LookTwice();
  EXPECT_EQ(WithToken(kUser), absl::StatusCode::kUnauthenticated);
}

TEST(TokensOpenTest, AFileThatIsNotThereIsTold) {
  const auto tokens = Tokens::Open("/no/such/file");
  EXPECT_THAT(std::string(tokens.status().message()), HasSubstr("--token-file /no/such/file"));
}

}  // namespace
}  // namespace saccade::server
