#include "server/lifecycle/front/http_guard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdio>
#include <fstream>

#include "absl/strings/str_cat.h"

namespace saccade::server {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr char kUser[] = "user-0123456789abcdef";
constexpr char kInfer[] = "/v2/models/{model}/infer";
constexpr char kLoad[] = "/v2/repository/models/{model}/load";

class HttpGuardTest : public testing::Test {
 protected:
  HttpGuardTest() : path_(testing::TempDir() + "/http_guard_test_tokens") {
    std::ofstream(path_) << kUser << " predict\n";
    chmod(path_.c_str(), 0600);
    tokens_ = Tokens::Open(path_).value();
    std::remove(path_.c_str());
    guard_ = TokenGuard(tokens_.get());
  }

  std::optional<HttpResponse> Ask(const HttpHeaders& headers, const char* route = kInfer) const {
    return guard_("POST", route, headers);
  }
  static std::string Challenge(const HttpResponse& response) {
    for (const auto& [name, value] : response.headers) {
      if (name == "WWW-Authenticate") return value;
    }
    return "";
  }

  const std::string path_;
  std::unique_ptr<Tokens> tokens_;
  HttpGuard guard_;
};

TEST_F(HttpGuardTest, ATokenWithTheScopePasses) {
  EXPECT_FALSE(Ask({{"authorization", absl::StrCat("Bearer ", kUser)}}).has_value());
  EXPECT_FALSE(Ask({{"AUTHORIZATION", absl::StrCat("bearer ", kUser)}}).has_value());
}

TEST_F(HttpGuardTest, WithoutATokenTheAnswerIsAChallengeWithoutAnError) {
  const auto response = Ask({{"accept", "*/*"}});
  ASSERT_TRUE(response.has_value());
  EXPECT_EQ(response->status, 401);
  // RFC 6750: a request without credentials gets no error code.
  EXPECT_EQ(Challenge(*response), "Bearer realm=\"saccade\"");
}

TEST_F(HttpGuardTest, AnUnknownTokenIsInvalid) {
  for (const HttpHeaders& headers : {HttpHeaders{{"Authorization", "Bearer other-0123456789abcdef"}},
                                     HttpHeaders{{"Authorization", "Basic eDp5"}},
                                     HttpHeaders{{"Authorization", absl::StrCat("Bearer ", kUser)},
                                                 {"authorization", absl::StrCat("Bearer ", kUser)}}}) {
    const auto response = Ask(headers);
    ASSERT_TRUE(response.has_value());
    EXPECT_EQ(response->status, 401);
    EXPECT_THAT(Challenge(*response), HasSubstr("error=\"invalid_token\""));
    EXPECT_THAT(response->body, Not(HasSubstr("0123456789")));
  }
}

TEST_F(HttpGuardTest, AMissingScopeIsNamed) {
  const auto response = Ask({{"Authorization", absl::StrCat("Bearer ", kUser)}}, kLoad);
  ASSERT_TRUE(response.has_value());
  EXPECT_EQ(response->status, 403);
  EXPECT_THAT(Challenge(*response), HasSubstr("error=\"insufficient_scope\", scope=\"admin\""));
  EXPECT_THAT(response->body, HasSubstr("admin"));
}

TEST_F(HttpGuardTest, ARouteWithoutAScopeIsForNobody) {
  const auto response = Ask({{"Authorization", absl::StrCat("Bearer ", kUser)}}, "/v2/new/route");
  ASSERT_TRUE(response.has_value());
  EXPECT_EQ(response->status, 403);
  EXPECT_THAT(Challenge(*response), Not(HasSubstr("scope=\"")));
}

TEST_F(HttpGuardTest, OpenRoutesNeedNoToken) {
  EXPECT_FALSE(guard_("GET", "/v2/health/live", {}).has_value());
  EXPECT_TRUE(guard_("POST", "/v2/health/live", {}).has_value());
}

}  // namespace
}  // namespace saccade::server
