#include "server/security/exposure.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace saccade::server {
namespace {

using testing::HasSubstr;

TEST(ExposureTest, KnowsLoopback) {
  for (const char* host : {"127.0.0.1", "127.8.9.10", "::1", "[::1]", "localhost"})
    EXPECT_TRUE(IsLoopback(host)) << host;
  for (const char* host : {"0.0.0.0", "::", "[::]", "10.0.0.1", "128.0.0.1", "example.org",
                           "localhost.example.org", "unix:/tmp/s", "::ffff:10.0.0.1", ""}) {
    EXPECT_FALSE(IsLoopback(host)) << host;
  }
}

TEST(ExposureTest, ThisMachineAloneNeedsNothing) {
  EXPECT_TRUE(CheckExposure({.hosts = {"127.0.0.1", "::1"}}).ok());
  EXPECT_TRUE(CheckExposure({.hosts = {"127.0.0.1"}, .requires_token = true}).ok());
}

TEST(ExposureTest, OtherMachinesHaveToShowWhoTheyAre) {
  const absl::Status open = CheckExposure({.hosts = {"127.0.0.1", "10.0.0.7"}});
  for (const char* said :
       {"10.0.0.7", "--host 127.0.0.1", "--tls-cert", "--token-file", "--tls-client-ca", "--insecure"}) {
    EXPECT_THAT(std::string(open.message()), HasSubstr(said));
  }
  EXPECT_FALSE(CheckExposure({.hosts = {"0.0.0.0"}, .tls = true}).ok());
  EXPECT_TRUE(CheckExposure({.hosts = {"0.0.0.0"}, .tls = true, .requires_client_certificate = true}).ok());
  EXPECT_TRUE(CheckExposure({.hosts = {"0.0.0.0"}, .tls = true, .requires_token = true}).ok());
}

TEST(ExposureTest, TokensDoNotTravelInTheClear) {
  const absl::Status open = CheckExposure({.hosts = {"0.0.0.0"}, .requires_token = true});
  EXPECT_THAT(std::string(open.message()), HasSubstr("--tls-cert"));
}

}  // namespace
}  // namespace saccade::server
