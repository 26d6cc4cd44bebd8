#include "server/http/origin_policy.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/http/authority.h"

namespace saccade::server {
namespace {

using ::testing::HasSubstr;

const OriginPolicy kNamed{{"models.example.com", "inference"}};
const OriginPolicy kAny{{"*"}};
// The policy of ports that listen on loopback addresses.
const OriginPolicy kNone{{}};
const Peer kLocal{"127.0.0.1", true, false};
const Peer kRemote{"10.0.0.7", false, false};

RequestHead Head(const std::string& authority, HttpHeaders headers = {}, const std::string& method = "POST",
                 const std::string& path = "/v2/models/a/infer") {
  RequestHead head;
  head.method = method;
  head.path = path;
  head.authority = authority;
  head.headers = std::move(headers);
  return head;
}

// 0 if the request is allowed.
int StatusOf(const OriginPolicy& policy, const RequestHead& head, const Peer& peer) {
  const auto refusal = CheckOrigin(policy, head, peer);
  return refusal ? refusal->status : 0;
}

TEST(OriginPolicyTest, HostsThatAreServed) {
  const struct {
    const char* authority;
    int from_remote;
    int from_local;
  } cases[] = {
      {"models.example.com", 0, 0},
      {"models.example.com:8000", 0, 0},
      {"MODELS.example.COM", 0, 0},
      {"models.example.com.", 0, 0},
      {"inference:8000", 0, 0},
      {"10.0.0.1", 0, 0},
      {"10.0.0.1:8000", 0, 0},
      {"[2001:db8::1]:8000", 0, 0},
      {"127.0.0.1:8000", 0, 0},
      {"[::1]:8000", 0, 0},
      {"localhost:8000", 421, 0},
      {"LocalHost", 421, 0},
      // HTTP/1.0 without Host; no browser omits it.
      {"", 0, 0},
      {"example.com", 421, 421},
      {"evil.models.example.com", 421, 421},
      {"models.example.com.evil.com", 421, 421},
      // Names that a page's DNS may point to this machine.
      {"rebind.evil.com:8000", 421, 421},
      {"localhost.evil.com", 421, 421},
      {"127.0.0.1.evil.com", 421, 421},
      {"127.1", 421, 421},
      {"0x7f000001", 421, 421},
      // No hosts.
      {"user@10.0.0.1", 421, 421},
      {"10.0.0.1:80:80", 421, 421},
      {"[::1", 421, 421},
      {"[evil.com]", 421, 421},
      {":8000", 421, 421},
  };
  for (const auto& row : cases) {
    EXPECT_EQ(StatusOf(kNamed, Head(row.authority), kRemote), row.from_remote) << row.authority;
    EXPECT_EQ(StatusOf(kNamed, Head(row.authority), kLocal), row.from_local) << row.authority;
  }
  EXPECT_EQ(StatusOf(kAny, Head("example.com"), kRemote), 0);
}

TEST(OriginPolicyTest, WithoutNamesOnlyLoopbackNamesAndAddressesAreServed) {
  for (const char* served : {"localhost", "localhost:8000", "LOCALHOST:80", "localhost.", "127.0.0.1:8000",
                             "127.0.0.2", "[::1]:8000", "10.0.0.1:8000", ""}) {
    EXPECT_EQ(StatusOf(kNone, Head(served), kLocal), 0) << served;
  }
  for (const char* refused : {"rebind.evil.com:8000", "localhost.evil.com", "models.example.com", "saccade",
                              "evil.localhost", "127.0.0.1.evil.com", "0x7f.1", "*"}) {
    EXPECT_EQ(StatusOf(kNone, Head(refused), kLocal), 421) << refused;
    // The page itself, and what it asks for as if it were its own.
    EXPECT_EQ(StatusOf(kNone, Head(refused, {}, "GET", "/"), kLocal), 421) << refused;
    EXPECT_EQ(StatusOf(kNone, Head(refused, {{"sec-fetch-site", "same-origin"}}), kLocal), 421) << refused;
  }
}

TEST(OriginPolicyTest, TheHostIsCheckedForThePageAsWell) {
  EXPECT_EQ(StatusOf(kNamed, Head("rebind.evil.com", {}, "GET", "/"), kLocal), 421);
  const auto refusal = CheckOrigin(kNamed, Head("rebind.evil.com"), kLocal);
  ASSERT_TRUE(refusal);
  EXPECT_THAT(refusal->body, HasSubstr("Host: rebind.evil.com"));
  EXPECT_THAT(refusal->body, HasSubstr("--allowed-hosts"));
}

TEST(OriginPolicyTest, OriginsThatAreAllowed) {
  const struct {
    const char* authority;
    const char* origin;
    int status;
  } cases[] = {
      {"10.0.0.1:8000", "http://10.0.0.1:8000", 0},
      {"10.0.0.1:8000", "HTTP://10.0.0.1:8000", 0},
      // Behind a proxy that ends TLS.
      {"models.example.com", "https://models.example.com", 0},
      {"models.example.com:443", "https://models.example.com", 0},
      {"models.example.com", "http://models.example.com:80", 0},
      // A listed name, although the proxy changed Host.
      {"10.0.0.1:8000", "https://models.example.com", 0},
      {"10.0.0.1:8000", "http://10.0.0.1", 403},
      {"10.0.0.1:8000", "http://10.0.0.1:8001", 403},
      {"10.0.0.1:8000", "http://10.0.0.2:8000", 403},
      {"10.0.0.1:8000", "http://evil.com", 403},
      {"10.0.0.1:8000", "http://models.example.com.evil.com", 403},
      {"10.0.0.1:8000", "null", 403},
      {"10.0.0.1:8000", "", 403},
      {"10.0.0.1:8000", "file://", 403},
      {"10.0.0.1:8000", "chrome-extension://abc", 403},
      {"10.0.0.1:8000", "http://10.0.0.1:8000/path", 403},
      {"", "http://evil.com", 403},
  };
  for (const auto& row : cases) {
    const RequestHead head = Head(row.authority, {{"origin", row.origin}});
    EXPECT_EQ(StatusOf(kNamed, head, kRemote), row.status) << row.authority << " " << row.origin;
  }
  // "*" serves every name, but it lists no origin.
  EXPECT_EQ(StatusOf(kAny, Head("10.0.0.1", {{"origin", "http://evil.com"}}), kRemote), 403);
}

TEST(OriginPolicyTest, FetchSites) {
  const struct {
    HttpHeaders headers;
    int status;
  } cases[] = {
      {{}, 0},
      {{{"sec-fetch-site", "none"}}, 0},
      {{{"sec-fetch-site", "same-origin"}}, 0},
      {{{"sec-fetch-site", "same-site"}}, 0},
      {{{"sec-fetch-site", "cross-site"}}, 403},
      {{{"Sec-Fetch-Site", "Cross-Site"}}, 403},
      // Another port of this host.
      {{{"sec-fetch-site", "same-site"}, {"origin", "http://10.0.0.1:3000"}}, 403},
      {{{"origin", "http://10.0.0.1:3000"}, {"sec-fetch-site", "same-site"}}, 403},
      // The browser compares with the name that it knows; a proxy may have changed Host.
      {{{"sec-fetch-site", "same-origin"}, {"origin", "https://portal.example.com"}}, 0},
      {{{"sec-fetch-site", "cross-site"}, {"origin", "http://10.0.0.1:8000"}}, 403},
      {{{"sec-fetch-site", "same-origin"}, {"sec-fetch-site", "cross-site"}}, 403},
  };
  for (const auto& row : cases) {
    std::string shown;
    for (const auto& [name, value] : row.headers) shown += name + ": " + value + " ";
    EXPECT_EQ(StatusOf(kAny, Head("10.0.0.1:8000", row.headers), kRemote), row.status) << shown;
    EXPECT_EQ(StatusOf(kAny, Head("10.0.0.1:8000", row.headers, "GET", "/metrics"), kRemote), row.status)
        << shown;
    EXPECT_EQ(StatusOf(kAny, Head("10.0.0.1:8000", row.headers, "POST", "/"), kRemote), row.status) << shown;
    // Links from other pages lead here.
    EXPECT_EQ(StatusOf(kAny, Head("10.0.0.1:8000", row.headers, "GET", "/"), kRemote), 0) << shown;
    EXPECT_EQ(StatusOf(kAny, Head("10.0.0.1:8000", row.headers, "HEAD", "/"), kRemote), 0) << shown;
  }
}

TEST(OriginPolicyTest, TheErrorNamesTheHeaderAndTheFlag) {
  const auto origin = CheckOrigin(kAny, Head("10.0.0.1", {{"origin", "http://evil.com"}}), kRemote);
  ASSERT_TRUE(origin);
  EXPECT_THAT(origin->body, HasSubstr("Origin: http://evil.com"));
  EXPECT_THAT(origin->body, HasSubstr("--allowed-hosts"));
  const auto site = CheckOrigin(kAny, Head("10.0.0.1", {{"sec-fetch-site", "cross-site"}}), kRemote);
  ASSERT_TRUE(site);
  EXPECT_THAT(site->body, HasSubstr("Sec-Fetch-Site: cross-site"));
  const auto long_one = CheckOrigin(kAny, Head("10.0.0.1", {{"origin", std::string(10'000, 'x')}}), kRemote);
  ASSERT_TRUE(long_one);
  EXPECT_LT(long_one->body.size(), 400u);
}

TEST(AuthorityTest, IsSplit) {
  const auto name = ParseAuthority("Example.COM.:8000");
  ASSERT_TRUE(name);
  EXPECT_EQ(name->host, "example.com");
  EXPECT_EQ(name->port, "8000");
  const auto address = ParseAuthority("[2001:DB8::1]");
  ASSERT_TRUE(address);
  EXPECT_EQ(address->host, "[2001:db8::1]");
  EXPECT_EQ(address->port, "");
  for (const char* text : {"", " ", "a b", "a/b", "a@b", "a:x", "a:123456", "a\tb", "[]", "[", "a,b c", "a?b",
                           "a#b", "\"a\"", "a\\b", "<a>", "[::1]x", "\x80"}) {
    EXPECT_FALSE(ParseAuthority(text)) << text;
  }
}

}  // namespace
}  // namespace saccade::server
