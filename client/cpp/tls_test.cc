// Tests of TLS and tokens: which daemons the client talks to, and the errors of failed handshakes.
#include <gmock/gmock.h>
#include <grpcpp/security/server_credentials.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "client/cpp/client.h"
#include "client/cpp/retry.h"
#include "client/cpp/status.h"
#include "client/cpp/testing/certificates.h"
#include "client/cpp/testing/connect_to.h"
#include "client/cpp/testing/fake_daemon.h"

namespace saccade::client {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

const Certificates& Files() {
  static const Certificates files;
  return files;
}

// Options that trust the authority of the daemon's certificate.
ClientOptions Trusting() {
  ClientOptions options;
  options.tls.emplace();
  options.tls->authorities = Certificates::Read(Files().authority());
  options.tls->server_name = "saccade.test";
  return options;
}

ClientOptions Known() {
  ClientOptions options = Trusting();
  options.tls->certificate = Certificates::Read(Files().certificate());
  options.tls->key = Certificates::Read(Files().key());
  return options;
}

absl::Status Refusal(ClientOptions options) { return Client::Connect(std::move(options)).status(); }

// Returns the error message of a call that must fail with UNAVAILABLE although a server was reached.
std::string Failure(const FakeDaemon& daemon, const ClientOptions& options) {
  const absl::Status status = ConnectTo(daemon.url(), options)->ServerLive().status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_FALSE(IsUnreachable(status)) << status;
  return std::string(status.message());
}

TEST(Tls, CarriesEveryKindOfCall) {
  FakeDaemon daemon(Files().Server(Files().certificate(), Files().key()));
  daemon.RequireAuthorization("Bearer s3cret");
  daemon.SetPredict([](const FakeRequest& request) -> absl::StatusOr<AnyAnswer> {
    if (request.restore.type) return Restoration();
    return Classification();
  });
  daemon.SetStatistics([] { return std::vector<ModelStatistics>(); });
  ClientOptions options = Trusting();
  options.token = "s3cret";
  const auto client = ConnectTo(daemon.url(), options);
  EXPECT_TRUE(client->ServerLive().ok());
  EXPECT_TRUE(client->ListModels().ok());
  EXPECT_TRUE(client->GetStatistics().ok());
  EXPECT_TRUE(client->WaitUntilServing("", absl::Seconds(30)).ok());
  EXPECT_TRUE(client->Classify("net", "picture").ok());
  RestoreOptions restore;
  restore.type = VoxelType::kUint8;
  const auto restored = client->Restore("net", VolumeFrom("volume"), restore);
  EXPECT_FALSE(absl::IsUnauthenticated(restored.status())) << restored.status();
  const auto stream = client->OpenStream();
  ASSERT_TRUE(stream.ok());
  ASSERT_TRUE((*stream)->Classify("net", "picture", {}).ok());
  const auto item = (*stream)->Next();
  ASSERT_TRUE(item.ok()) << item.status();
  EXPECT_TRUE((*item)->answer.ok());

  options.token = "guessed";
  EXPECT_TRUE(absl::IsUnauthenticated(ConnectTo(daemon.url(), options)->ServerLive().status()));
}

TEST(Tls, AnUnknownAuthorityIsNotTrusted) {
  FakeDaemon daemon(Files().Server(Files().certificate(), Files().key()));
  ClientOptions options = Trusting();
  options.tls->authorities = Certificates::Read(Files().stranger());
  EXPECT_THAT(Failure(daemon, options),
              AllOf(HasSubstr(absl::StrCat("the certificate of ", daemon.url(), " is not trusted")),
                    HasSubstr("signed by CN = authority of tests: unable to get")));
  // This machine's authorities do not trust it either.
  options.tls->authorities = "";
  EXPECT_THAT(Failure(daemon, options), HasSubstr("is not trusted: it is signed by CN = authority of tests"));
  const absl::Status status = ConnectTo(daemon.url(), options)->ServerLive().status();
  EXPECT_TRUE(IsUntrusted(status));
  EXPECT_FALSE(RetryDelay(status, 0).has_value());
}

TEST(Tls, AnExpiredCertificateOrAnotherNameIsNotTrusted) {
  FakeDaemon expired(Files().Server(Files().expired(), Files().expired_key()));
  EXPECT_THAT(Failure(expired, Trusting()), HasSubstr("it has expired; it was valid until "));
  FakeDaemon daemon(Files().Server(Files().certificate(), Files().key()));
  ClientOptions options = Trusting();
  options.tls->server_name = "";
  EXPECT_THAT(Failure(daemon, options), HasSubstr("is not for the name '127.0.0.1'"));
  options.tls->server_name = "other.test";
  EXPECT_THAT(Failure(daemon, options), HasSubstr("is not for the name 'other.test'"));
}

TEST(Tls, ReportsThatOnlyOneSideUsesTls) {
  FakeDaemon plain;
  EXPECT_THAT(Failure(plain, Trusting()), HasSubstr("does not speak TLS"));
  FakeDaemon daemon(Files().Server(Files().certificate(), Files().key()));
  EXPECT_THAT(Failure(daemon, {}),
              AllOf(HasSubstr("closed the connection at once"), HasSubstr("require TLS")));
}

TEST(Tls, SendsTheClientsCertificate) {
  FakeDaemon daemon(Files().Server(Files().certificate(), Files().key(), true));
  EXPECT_TRUE(ConnectTo(daemon.url(), Known())->ServerLive().ok());
  EXPECT_THAT(Failure(daemon, Trusting()), HasSubstr("require another client certificate"));
}

TEST(Tls, RejectsInvalidCertificatesAndKeys) {
  ClientOptions options = Trusting();
  options.tls->authorities = "no certificate";
  EXPECT_THAT(std::string(Refusal(options).message()),
              HasSubstr("the list of authorities contains no readable certificate"));
  options = Known();
  options.tls->key = "";
  EXPECT_THAT(std::string(Refusal(options).message()), HasSubstr("the key is missing"));
  options.tls->key = Certificates::Read(Files().expired_key());
  EXPECT_THAT(std::string(Refusal(options).message()), HasSubstr("does not match its certificate"));
  options.tls->key = Certificates::Read(Files().certificate());
  EXPECT_THAT(std::string(Refusal(options).message()), HasSubstr("no readable private key"));
  options.tls->certificate = Certificates::Read(Files().expired());
  options.tls->key = Certificates::Read(Files().expired_key());
  EXPECT_THAT(std::string(Refusal(options).message()), HasSubstr("was valid until"));
}

TEST(Token, IsSentInClearTextOnlyToThisMachineOrIfAllowed) {
  ClientOptions options;
  options.url = "saccade.prod:8001";
  options.token = "s3cret";
  const absl::Status refused = Refusal(options);
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(refused.message()), AllOf(HasSubstr("in clear text"), Not(HasSubstr("s3cret"))));
  options.token_without_tls = true;
  EXPECT_TRUE(Refusal(options).ok());
  options.token_without_tls = false;
  options.tls.emplace();
  EXPECT_TRUE(Refusal(options).ok());
  options.tls.reset();
  for (const char* local : {"127.0.0.1:8001", "localhost:8001", "[::1]:8001", "unix:/run/saccade.sock"}) {
    options.url = local;
    EXPECT_TRUE(Refusal(options).ok()) << local;
  }
}

TEST(Token, RejectsCharactersThatAHeaderMustNotHave) {
  ClientOptions options;
  for (const std::string& token : {std::string("two words"), std::string("line\n"),
                                   std::string("caf\xc3\xa9"), std::string(5000, 'a')}) {
    options.token = token;
    EXPECT_EQ(Refusal(options).code(), absl::StatusCode::kInvalidArgument);
  }
}

}  // namespace
}  // namespace saccade::client
