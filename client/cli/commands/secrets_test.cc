#include "client/cli/commands/secrets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <map>

#include "client/cli/testing/command_test.h"
#include "client/cpp/testing/certificates.h"

namespace saccade::client {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

const Certificates& Files() {
  static const Certificates files;
  return files;
}

class Secrets : public CommandTest {
 protected:
  Secrets() : guarded_(Files().Server(Files().certificate(), Files().key(), true)) {
    guarded_.RequireAuthorization("Bearer s3cret");
  }
  ~Secrets() override { unsetenv("SACCADE_TOKEN"); }

  RunResult Models(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"models", "--url", guarded_.url()});
    return RunWith(std::move(arguments));
  }

  std::vector<std::string> Identity() const {
    return {"--tls-ca",   Files().authority(),   "--tls-name", "saccade.test",
            "--tls-cert", Files().certificate(), "--tls-key",  Files().key()};
  }

  std::vector<std::string> With(std::vector<std::string> more) const {
    std::vector<std::string> all = Identity();
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }

  std::string TokenFile(const std::string& text) {
    const std::string path = File("token", text);
    std::filesystem::permissions(path, std::filesystem::perms::owner_read);
    return path;
  }

  FakeDaemon guarded_;
};

TEST_F(Secrets, ComeFromFilesAndTheEnvironment) {
  const RunResult file = Models(With({"--token-file", TokenFile("s3cret\n")}));
  EXPECT_EQ(file.exit_code, 0) << file.err;
  EXPECT_THAT(file.err, Not(HasSubstr("chmod")));
  setenv("SACCADE_TOKEN", "s3cret", 1);
  EXPECT_EQ(Models(Identity()).exit_code, 0);
  // The file takes precedence over SACCADE_TOKEN.
  setenv("SACCADE_TOKEN", "guessed", 1);
  EXPECT_EQ(Models(With({"--token-file", folder_ / "token"})).exit_code, 0);
  const RunResult guessed = Models(Identity());
  EXPECT_EQ(guessed.exit_code, 80);
  EXPECT_THAT(guessed.err, AllOf(HasSubstr("the token is missing or unknown"), HasSubstr("SACCADE_TOKEN")));
  unsetenv("SACCADE_TOKEN");
  EXPECT_EQ(Models(Identity()).exit_code, 80);
}

TEST_F(Secrets, FilesCanBeNamedByTheEnvironment) {
  const std::map<std::string, std::string> named = {{"SACCADE_TLS_CA", Files().authority()},
                                                    {"SACCADE_TLS_CERT", Files().certificate()},
                                                    {"SACCADE_TLS_KEY", Files().key()},
                                                    {"SACCADE_TLS_NAME", "saccade.test"},
                                                    {"SACCADE_TOKEN_FILE", TokenFile("s3cret")}};
  for (const auto& [name, value] : named) setenv(name.c_str(), value.c_str(), 1);
  const RunResult run = Models({});
  for (const auto& [name, value] : named) unsetenv(name.c_str());
  EXPECT_EQ(run.exit_code, 0) << run.err;
  setenv("SACCADE_TLS", "1", 1);
  EXPECT_THAT(Models({}).err, HasSubstr("is not trusted"));
  unsetenv("SACCADE_TLS");
}

TEST_F(Secrets, WarnAboutATokenThatOthersCanRead) {
  const std::string path = TokenFile("s3cret");
  std::filesystem::permissions(path, std::filesystem::perms::others_read, std::filesystem::perm_options::add);
  const RunResult run = Models(With({"--token-file", path}));
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_THAT(run.err, HasSubstr("chmod 600 " + path));
}

TEST_F(Secrets, NameTheFileThatCannotBeRead) {
  struct Case {
    std::vector<std::string> arguments;
    std::string message;
  };
  for (const Case& one :
       {Case{{"--tls-ca", "no/such.pem"}, "--tls-ca no/such.pem cannot be opened: No such file"},
        Case{{"--tls-cert", folder_}, "is a directory; expected a certificate in PEM"},
        Case{{"--tls-key", File("empty", "")}, "is empty; expected a key in PEM"},
        Case{{"--token-file", "no/token"}, "--token-file no/token cannot be opened"},
        Case{{"--token-file", File("blank", " \n")}, "contains only white space"},
        Case{{"--token-file", File("long", std::string(70000, 'a'))}, "more than 65536 bytes"},
        Case{{"--tls-cert", Files().certificate()}, "the key is missing"}}) {
    const RunResult run = Models(one.arguments);
    EXPECT_EQ(run.exit_code, 2) << one.message;
    EXPECT_THAT(run.err, HasSubstr(one.message));
  }
}

TEST_F(Secrets, ExplainAFailedHandshake) {
  const RunResult stranger = Models({"--tls-ca", Files().stranger()});
  EXPECT_EQ(stranger.exit_code, 78);
  EXPECT_THAT(stranger.err,
              AllOf(HasSubstr("is not trusted"), HasSubstr("give the authorities to trust with --tls-ca")));
  EXPECT_THAT(Models({"--tls-ca", Files().authority()}).err,
              AllOf(HasSubstr("not for the name"), HasSubstr("--tls-name")));
  setenv("SACCADE_TOKEN", "s3cret", 1);
  const RunResult open = RunWith({"models", "--url", "saccade.prod:8001"});
  EXPECT_EQ(open.exit_code, 2);
  EXPECT_THAT(open.err, AllOf(HasSubstr("--token-without-tls"), Not(HasSubstr("s3cret"))));
}

}  // namespace
}  // namespace saccade::client
