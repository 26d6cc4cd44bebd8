#include "server/security/tokens.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <cstdio>
#include <fstream>
#include <thread>
#include <vector>

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

  void Write(const std::string& text) const {
    std::ofstream(path_) << text;
    chmod(path_.c_str(), 0600);
  }
  void ReloadTwice() const {
    tokens_->ReloadIfChanged();
    tokens_->ReloadIfChanged();
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
  ReloadTwice();
  EXPECT_EQ(WithToken(kUser), absl::StatusCode::kUnauthenticated);
  EXPECT_EQ(WithToken(kAdmin, Scope::kAdmin), absl::StatusCode::kPermissionDenied);
}

TEST_F(TokensTest, AWrongOneLeavesWhatWas) {
  Write("not a list of tokens");
  ReloadTwice();
  EXPECT_EQ(WithToken(kUser), absl::StatusCode::kOk);
  std::remove(path_.c_str());
  ReloadTwice();
  EXPECT_EQ(WithToken(kUser), absl::StatusCode::kOk);
  Write(absl::StrCat(kAdmin, " admin\n"));
  ReloadTwice();
  EXPECT_EQ(WithToken(kUser), absl::StatusCode::kUnauthenticated);
}

TEST_F(TokensTest, BrokenFilesLeaveTheTokensInUse) {
  const std::string good = absl::StrCat(kUser, " predict\n");
  for (const std::string& broken :
       {std::string(), std::string(kMaxSecretBytes + 1, 'x'), std::string(50, '\0'), good + good,
        good + "short predict\n", absl::StrCat(kUser, " root\n")}) {
    Write(broken);
    ReloadTwice();
    EXPECT_EQ(WithToken(kUser), absl::StatusCode::kOk) << broken.substr(0, 100);
  }
}

// A token is either the old file's or the new one's, never neither.
TEST_F(TokensTest, CallsAreCheckedWhileTheFileIsReloaded) {
  std::atomic<bool> stop = false;
  std::atomic<int> refused = 0;
  std::vector<std::thread> callers;
  for (int i = 0; i < 2; ++i) {
    callers.emplace_back([&] {
      while (!stop) refused += WithToken(kUser) == absl::StatusCode::kOk ? 0 : 1;
    });
  }
  for (int i = 0; i < 50; ++i) {
    Write(absl::StrCat(kUser, " predict\n# ", std::string(static_cast<size_t>(i), '.'), "\n"));
    ReloadTwice();
  }
  stop = true;
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(refused, 0);
}

TEST(TokensOpenTest, AFileThatIsNotThereIsTold) {
  const auto tokens = Tokens::Open("/no/such/file");
  EXPECT_THAT(std::string(tokens.status().message()), HasSubstr("--token-file /no/such/file"));
}

TEST_F(TokensTest, ATokenIsLimitedToItsModels) {
  const std::string user = tokens_->IdentityOf({absl::StrCat("Bearer ", kUser)});
  EXPECT_TRUE(tokens_->CheckModel(user, "any").ok());
  Write(absl::StrCat(kUser, " predict:one,two\n"));
  ReloadTwice();
  EXPECT_TRUE(tokens_->CheckModel(user, "two").ok());
  EXPECT_EQ(tokens_->CheckModel(user, "three").code(), absl::StatusCode::kPermissionDenied);
  Write(absl::StrCat(kAdmin, " predict\n"));
  ReloadTwice();
  EXPECT_EQ(tokens_->CheckModel(user, "one").code(), absl::StatusCode::kPermissionDenied) << "revoked";
}

TEST_F(TokensTest, ATokenIsNamedByItsDigest) {
  const std::string user = tokens_->IdentityOf({absl::StrCat("Bearer ", kUser)});
  // printf %s TOKEN | sha256sum | cut -c1-16
  EXPECT_EQ(user, "token:7ae739fc9409d691");
  EXPECT_NE(tokens_->IdentityOf({absl::StrCat("Bearer ", kAdmin)}), user);
  EXPECT_EQ(tokens_->IdentityOf({"Bearer other-0123456789abcdef"}), "");
  EXPECT_EQ(tokens_->IdentityOf({}), "");
  const std::string good = absl::StrCat("Bearer ", kUser);
  EXPECT_EQ(tokens_->IdentityOf({good, good}), "");
}

}  // namespace
}  // namespace saccade::server
