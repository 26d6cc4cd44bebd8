#include "server/lifecycle/flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <limits>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace saccade::server {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class FlagsTest : public testing::Test {
 protected:
  // What a command line does: the flags, or an exit code and an error.
  struct Outcome {
    std::optional<Flags> flags;
    int exit_code = 0;
    std::string out;
    std::string error;
  };

  static Outcome ParseOnly(std::vector<std::string> words) {
    words.insert(words.begin(), "saccaded");
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    Outcome outcome;
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    outcome.flags = ParseFlags(static_cast<int>(argv.size()), argv.data(), &outcome.exit_code);
    outcome.out = testing::internal::GetCapturedStdout();
    outcome.error = testing::internal::GetCapturedStderr();
    return outcome;
  }

  // Adds the flags without which the daemon does not start.
  static Outcome Parse(std::vector<std::string> words) {
    words.insert(words.begin(), {"--model-repository=" + testing::TempDir(), "--host=127.0.0.1"});
    return ParseOnly(std::move(words));
  }

  static Flags Good(std::vector<std::string> words) {
    Outcome outcome = Parse(std::move(words));
    EXPECT_TRUE(outcome.flags.has_value()) << outcome.error;
    return outcome.flags.value_or(Flags());
  }

  // Returns the error of a command line that is rejected with exit code 2.
  static std::string Error(std::vector<std::string> words) {
    Outcome outcome = Parse(std::move(words));
    EXPECT_FALSE(outcome.flags.has_value());
    EXPECT_EQ(outcome.exit_code, 2);
    EXPECT_EQ(outcome.out, "");
    return outcome.error;
  }
};

// An environment variable during a test.
class Variable {
 public:
  Variable(const std::string& name, const std::string& value) : name_(name) {
    setenv(name_.c_str(), value.c_str(), 1);
  }
  ~Variable() { unsetenv(name_.c_str()); }

 private:
  const std::string name_;
};

TEST_F(FlagsTest, Defaults) {
  const Flags flags = Good({});
  EXPECT_THAT(flags.model_repositories, ElementsAre(testing::TempDir()));
  EXPECT_EQ(flags.grpc_port, 8001);
  EXPECT_EQ(flags.http_port, 8000);
  EXPECT_EQ(flags.metrics_port, 8002);
  EXPECT_EQ(flags.front.network_threads, 0);
  EXPECT_EQ(flags.front.max_connections, 0);
  EXPECT_EQ(flags.front.max_connections_per_address, 4096);
  EXPECT_EQ(flags.front.max_handshakes_per_second, 1000);
  EXPECT_THAT(flags.front.allowed_hosts, IsEmpty());
  EXPECT_EQ(flags.front.limits.max_streams, 256);
  EXPECT_EQ(flags.front.limits.keepalive_time, absl::Seconds(60));
  EXPECT_EQ(flags.front.limits.max_connection_age, absl::InfiniteDuration());
  EXPECT_TRUE(flags.page);
  EXPECT_EQ(flags.model_control, ModelControl::kNone);
  EXPECT_EQ(flags.repository_poll, absl::Seconds(15));
  EXPECT_EQ(flags.repository_poll_jitter, absl::ZeroDuration());
  EXPECT_THAT(flags.load_models, IsEmpty());
  EXPECT_TRUE(flags.strict_readiness);
  EXPECT_TRUE(flags.complete_configurations);
  EXPECT_TRUE(flags.exit_on_error);
  EXPECT_FALSE(flags.check_config);
  EXPECT_FALSE(flags.permissions.executable);
  EXPECT_FALSE(flags.permissions.drills);
  EXPECT_FALSE(flags.allow_shared_memory);
  EXPECT_EQ(flags.unload_timeout, absl::Seconds(30));
  EXPECT_EQ(flags.warm_up, absl::Seconds(5));
  EXPECT_EQ(flags.load_deadline, absl::Seconds(240));
  EXPECT_EQ(flags.lame_duck, absl::Seconds(5));
  EXPECT_EQ(flags.drain_timeout, absl::Seconds(25));
  EXPECT_EQ(flags.stall_after, absl::Seconds(120));
  EXPECT_EQ(flags.upload_timeout, absl::Seconds(600));
  EXPECT_EQ(flags.max_message_bytes, 64 << 20);
  EXPECT_EQ(flags.max_stream_requests, 64);
  EXPECT_EQ(flags.max_queue_size, 256);
  EXPECT_EQ(flags.decode_queue, 256);
  EXPECT_EQ(flags.decode_threads, 0);
  EXPECT_EQ(flags.cores, 0);
  EXPECT_EQ(flags.threads_per_instance, 0);
  EXPECT_EQ(flags.response_cache_bytes, 0);
  EXPECT_EQ(flags.admission.max_inflight_requests, 1024);
  EXPECT_EQ(flags.admission.clients.requests_per_second, 0);
  EXPECT_EQ(flags.log_format, LogFormat::kText);
  EXPECT_EQ(flags.log_level, LogLevel::kInfo);
  EXPECT_FALSE(flags.access_log);
  EXPECT_THAT(flags.warnings, IsEmpty());
}

struct Number {
  const char* flag;
  double min;
  double max;
  // Returns the value that was read.
  double (*value)(const Flags&);
};

constexpr double kDay = 86400;
constexpr double kInt32 = std::numeric_limits<int32_t>::max();
constexpr double kAny = 0;  // No upper bound that a test could reach.

const Number kNumbers[] = {
    {"grpc-port", 0, 65535, [](const Flags& f) -> double { return f.grpc_port; }},
    {"http-port", 0, 65535, [](const Flags& f) -> double { return f.http_port; }},
    {"metrics-port", 0, 65535, [](const Flags& f) -> double { return f.metrics_port; }},
    {"network-threads", 0, 64, [](const Flags& f) -> double { return f.front.network_threads; }},
    {"max-connections", 0, 1'000'000, [](const Flags& f) -> double { return f.front.max_connections; }},
    {"max-connections-per-address", 1, 1'000'000,
     [](const Flags& f) -> double { return f.front.max_connections_per_address; }},
    {"max-handshakes-per-second", 1, 1'000'000,
     [](const Flags& f) -> double { return f.front.max_handshakes_per_second; }},
    {"max-streams-per-connection", 1, 100'000,
     [](const Flags& f) -> double { return f.front.limits.max_streams; }},
    {"max-resets-per-second", 1, 1'000'000,
     [](const Flags& f) -> double { return f.front.limits.max_resets_per_second; }},
    {"max-health-watches", 0, 1'000'000, [](const Flags& f) -> double { return f.front.max_health_watches; }},
    {"max-health-watches-per-client", 0, 1'000'000,
     [](const Flags& f) -> double { return f.front.max_health_watches_per_client; }},
    {"max-head-bytes", 1024, 1 << 20, [](const Flags& f) -> double { return f.front.limits.max_head_bytes; }},
    {"head-timeout-seconds", 0.1, kDay,
     [](const Flags& f) { return absl::ToDoubleSeconds(f.front.limits.head_timeout); }},
    {"idle-timeout-seconds", 0.1, kDay,
     [](const Flags& f) { return absl::ToDoubleSeconds(f.front.limits.idle_timeout); }},
    {"min-transfer-rate", 1, 1 << 30,
     [](const Flags& f) -> double { return f.front.limits.min_bytes_per_second; }},
    {"repository-poll-secs", 0.01, kDay,
     [](const Flags& f) { return absl::ToDoubleSeconds(f.repository_poll); }},
    {"repository-poll-jitter-secs", 0, kDay,
     [](const Flags& f) { return absl::ToDoubleSeconds(f.repository_poll_jitter); }},
    {"unload-timeout-seconds", 0, kDay,
     [](const Flags& f) { return absl::ToDoubleSeconds(f.unload_timeout); }},
    {"warm-up-seconds", 0, kDay, [](const Flags& f) { return absl::ToDoubleSeconds(f.warm_up); }},
    {"load-deadline-seconds", 0, kDay, [](const Flags& f) { return absl::ToDoubleSeconds(f.load_deadline); }},
    {"lame-duck-seconds", 0, kDay, [](const Flags& f) { return absl::ToDoubleSeconds(f.lame_duck); }},
    {"drain-timeout-seconds", 0, kDay, [](const Flags& f) { return absl::ToDoubleSeconds(f.drain_timeout); }},
    {"exit-timeout-secs", 0, kDay, [](const Flags& f) { return absl::ToDoubleSeconds(f.drain_timeout); }},
    {"stall-seconds", 0.1, kDay, [](const Flags& f) { return absl::ToDoubleSeconds(f.stall_after); }},
    {"upload-timeout-seconds", 0, kDay,
     [](const Flags& f) { return absl::ToDoubleSeconds(f.upload_timeout); }},
    {"max-message-bytes", 1, kInt32, [](const Flags& f) -> double { return f.max_message_bytes; }},
    {"max-stream-requests", 1, 10'000, [](const Flags& f) -> double { return f.max_stream_requests; }},
    {"max-picture-bytes", 1, kInt32, [](const Flags& f) -> double { return f.decode.max_bytes; }},
    {"max-picture-pixels", 1, 1 << 30, [](const Flags& f) -> double { return f.decode.max_pixels; }},
    {"max-inflight-requests", 1, kAny,
     [](const Flags& f) -> double { return f.admission.max_inflight_requests; }},
    {"max-inflight-bytes", 1, kAny, [](const Flags& f) -> double { return f.admission.max_inflight_bytes; }},
    {"max-decoded-bytes", 1, kAny, [](const Flags& f) -> double { return f.admission.max_decoded_bytes; }},
    {"client-requests-per-second", 0, 1e6,
     [](const Flags& f) { return f.admission.clients.requests_per_second; }},
    {"max-queue-size", 1, kAny, [](const Flags& f) -> double { return f.max_queue_size; }},
    {"decode-queue", 1, kAny, [](const Flags& f) -> double { return f.decode_queue; }},
    {"response-cache-byte-size", 0, 1LL << 50,
     [](const Flags& f) -> double { return f.response_cache_bytes; }},
    {"cores", 0, 1024, [](const Flags& f) -> double { return f.cores; }},
    {"decode-threads", 0, 1024, [](const Flags& f) -> double { return f.decode_threads; }},
    {"threads-per-instance", 0, 1024, [](const Flags& f) -> double { return f.threads_per_instance; }},
};

// The name that errors use, which is the first of a flag with two.
std::string NameInErrors(const Number& number) {
  const std::string name = number.flag;
  return absl::StrCat("--", name == "exit-timeout-secs" ? "drain-timeout-seconds" : name);
}

std::string Text(double number) {
  const auto whole = static_cast<int64_t>(number);
  return static_cast<double>(whole) == number ? absl::StrCat(whole) : absl::StrCat(number);
}

TEST_F(FlagsTest, NumbersHaveBounds) {
  for (const Number& number : kNumbers) {
    const std::string flag = absl::StrCat("--", number.flag);
    EXPECT_EQ(number.value(Good({absl::StrCat(flag, "=", Text(number.min))})), number.min) << flag;
    const std::string below = Text(number.min >= 1 ? number.min - 1 : -1);
    EXPECT_THAT(Error({absl::StrCat(flag, "=", below)}), HasSubstr(NameInErrors(number)));
    if (number.max == kAny) continue;
    EXPECT_EQ(number.value(Good({absl::StrCat(flag, "=", Text(number.max))})), number.max) << flag;
    EXPECT_THAT(Error({absl::StrCat(flag, "=", Text(number.max + 1))}),
                AllOf(HasSubstr(NameInErrors(number)), HasSubstr("expected a number from ")));
  }
}

TEST_F(FlagsTest, NumbersThatAreNoneAreRejected) {
  for (const Number& number : kNumbers) {
    const std::string flag = absl::StrCat("--", number.flag);
    for (const char* text : {"", "x", "1x", "99999999999999999999999", "nan", "inf"}) {
      EXPECT_THAT(Error({absl::StrCat(flag, "=", text)}), HasSubstr(NameInErrors(number))) << text;
    }
  }
}

struct Switch {
  const char* flag;
  bool (*value)(const Flags&);
  bool preset;
};

constexpr Switch kSwitches[] = {
    {"page", [](const Flags& f) { return f.page; }, true},
    {"exit-on-error", [](const Flags& f) { return f.exit_on_error; }, true},
    {"strict-readiness", [](const Flags& f) { return f.strict_readiness; }, true},
    {"log-info", [](const Flags& f) { return f.log_info; }, true},
    {"log-warning", [](const Flags& f) { return f.log_warning; }, true},
    {"log-error", [](const Flags& f) { return f.log_error; }, true},
    {"allow-executable-models", [](const Flags& f) { return f.permissions.executable; }, false},
    {"allow-drills", [](const Flags& f) { return f.permissions.drills; }, false},
    {"allow-shared-memory", [](const Flags& f) { return f.allow_shared_memory; }, false},
    {"triton-status-codes", [](const Flags& f) { return f.triton_status_codes; }, false},
    {"check-config", [](const Flags& f) { return f.check_config; }, false},
    {"plain-metrics", [](const Flags& f) { return f.security.plain_metrics; }, false},
    {"insecure", [](const Flags& f) { return f.security.insecure; }, false},
    {"access-log", [](const Flags& f) { return f.access_log; }, false},
};

TEST_F(FlagsTest, SwitchesTakeTrueAndFalse) {
  for (const Switch& one : kSwitches) {
    const std::string flag = absl::StrCat("--", one.flag);
    EXPECT_EQ(one.value(Good({})), one.preset) << flag;
    for (const bool on : {true, false}) {
      EXPECT_EQ(one.value(Good({absl::StrCat(flag, on ? "=true" : "=false")})), on) << flag;
    }
    EXPECT_THAT(Error({absl::StrCat(flag, "=maybe")}), HasSubstr(flag));
    EXPECT_TRUE(one.preset || one.value(Good({flag}))) << flag;
  }
}

TEST_F(FlagsTest, BucketsAscend) {
  EXPECT_THAT(Good({}).latency_buckets, IsEmpty());
  EXPECT_EQ(Good({"--latency-buckets=0.001,0.5,86400"}).latency_buckets,
            (std::vector<double>{0.001, 0.5, 86400}));
  std::string many = "1";
  for (int i = 2; i <= 65; ++i) absl::StrAppend(&many, ",", i);
  for (const std::string& wrong : {std::string("0"), std::string("1,1"), std::string("2,1"), std::string("x"),
                                   std::string("nan"), std::string("86401"), std::string("1,"), many}) {
    EXPECT_THAT(Error({absl::StrCat("--latency-buckets=", wrong)}),
                AllOf(HasSubstr("--latency-buckets"), HasSubstr("ascending numbers of seconds")))
        << wrong;
  }
}

TEST_F(FlagsTest, CompletionOfConfigurationsIsDisabledByEitherName) {
  EXPECT_FALSE(Good({"--disable-auto-complete-config"}).complete_configurations);
  EXPECT_FALSE(Good({"--strict-model-config=true"}).complete_configurations);
  EXPECT_TRUE(Good({"--strict-model-config=false"}).complete_configurations);
}

TEST_F(FlagsTest, ChoicesListTheirValues) {
  EXPECT_EQ(Good({"--model-control-mode=poll"}).model_control, ModelControl::kPoll);
  EXPECT_EQ(Good({"--model-control-mode=explicit"}).model_control, ModelControl::kExplicit);
  EXPECT_THAT(Error({"--model-control-mode=all"}),
              AllOf(HasSubstr("--model-control-mode"), HasSubstr("poll"), HasSubstr("explicit")));
  EXPECT_EQ(Good({"--log-format=json"}).log_format, LogFormat::kJson);
  EXPECT_EQ(Good({"--log-format=ISO8601"}).log_format, LogFormat::kText);
  EXPECT_THAT(Error({"--log-format=xml"}), AllOf(HasSubstr("--log-format"), HasSubstr("json")));
  EXPECT_EQ(Good({"--log-level=error"}).log_level, LogLevel::kError);
  EXPECT_THAT(Error({"--log-level=loud"}), AllOf(HasSubstr("--log-level"), HasSubstr("warning")));
  EXPECT_EQ(Good({"--log-verbose=1"}).log_level, LogLevel::kDebug);
  EXPECT_EQ(Good({"--log-verbose=0"}).log_level, LogLevel::kInfo);
}

TEST_F(FlagsTest, CacheConfigHasTritonsSyntax) {
  EXPECT_EQ(Good({"--cache-config=local,size=1048576"}).response_cache_bytes, 1 << 20);
  for (const char* wrong : {"", "local", "local,size=", "local,size=0", "local,size=-1", "local,size=1k",
                            "redis,host=a", "local,size=1125899906842625", "size=1"}) {
    EXPECT_THAT(Error({absl::StrCat("--cache-config=", wrong)}), HasSubstr("--cache-config")) << wrong;
  }
  EXPECT_THAT(Error({"--cache-config=local,size=0"}), HasSubstr("expected local,size=BYTES"));
  EXPECT_THAT(Error({"--cache-config=local,size=9", "--response-cache-byte-size=9"}),
              AllOf(HasSubstr("--cache-config"), HasSubstr("--response-cache-byte-size")));
}

TEST_F(FlagsTest, SomeFlagsNeedOthers) {
  EXPECT_THAT(Error({"--client-burst=5"}), HasSubstr("--client-requests-per-second"));
  EXPECT_EQ(Good({"--client-burst=5", "--client-requests-per-second=2.5"}).admission.clients.burst, 5);
  EXPECT_THAT(Error({"--access-log-per-second=5"}), HasSubstr("--access-log"));
  EXPECT_EQ(Good({"--access-log-per-second=5", "--access-log"}).access_log_per_second, 5);
  EXPECT_THAT(Error({"--tls-cert=c"}), HasSubstr("--tls-key"));
  EXPECT_THAT(Error({"--tls-key=k"}), HasSubstr("--tls-cert"));
  EXPECT_THAT(Error({"--tls-client-ca=c"}), HasSubstr("--tls-cert"));
}

TEST_F(FlagsTest, AdmissionKnowsTheLargestMessage) {
  EXPECT_EQ(Good({"--max-message-bytes=1000"}).admission.max_message_bytes, 1000);
}

TEST_F(FlagsTest, AllowedHostsAreNames) {
  EXPECT_THAT(Good({"--allowed-hosts=Models.example.org", "--allowed-hosts=localhost"}).front.allowed_hosts,
              ElementsAre("models.example.org", "localhost"));
  for (const char* wrong :
       {"", "http://example.org", "a,b", "a b", "models.example.org:8000", "models.example.org."}) {
    EXPECT_THAT(Error({absl::StrCat("--allowed-hosts=", wrong)}),
                AllOf(HasSubstr("--allowed-hosts"), HasSubstr("expected a host name")))
        << wrong;
  }
}

TEST_F(FlagsTest, OnLoopbackOnlyLoopbackNamesAreServedUnlessOthersAreNamed) {
  const FrontFlags none = Good({}).front;
  EXPECT_THAT(AllowedHosts(none, {"127.0.0.1", "127.0.0.2"}), IsEmpty());
  EXPECT_THAT(AllowedHosts(none, {"localhost", "[::1]"}), IsEmpty());
  EXPECT_THAT(AllowedHosts(none, {"127.0.0.1", "0.0.0.0"}), ElementsAre("*"))
      << "the ports serve the same, so one that others reach decides";
  EXPECT_THAT(AllowedHosts(none, {"10.0.0.7"}), ElementsAre("*"));
  const FrontFlags named = Good({"--allowed-hosts=models.example.org"}).front;
  EXPECT_THAT(AllowedHosts(named, {"127.0.0.1"}), ElementsAre("models.example.org"));
  EXPECT_THAT(AllowedHosts(named, {"0.0.0.0"}), ElementsAre("models.example.org"));
  EXPECT_THAT(AllowedHosts(Good({"--allowed-hosts=*"}).front, {"127.0.0.1"}), ElementsAre("*"));
}

TEST_F(FlagsTest, NetworkThreadsFollowTheCores) {
  FrontFlags flags;
  EXPECT_EQ(NetworkThreads(flags, 1), 1);
  EXPECT_EQ(NetworkThreads(flags, 2), 2);
  EXPECT_EQ(NetworkThreads(flags, 12), 3);
  EXPECT_EQ(NetworkThreads(flags, 256), 4);
  flags.network_threads = 8;
  EXPECT_EQ(NetworkThreads(flags, 4), 4) << "more than the cores would only wait for each other";
  EXPECT_EQ(NetworkThreads(flags, 16), 8);
  EXPECT_EQ(NetworkThreads(flags, 0), 1) << "the number of cores may be unknown";
}

TEST_F(FlagsTest, ConnectionsFollowTheLimitOfOpenFiles) {
  FrontFlags flags;
  EXPECT_EQ(MaxConnections(flags, 1024), 512U);
  EXPECT_EQ(MaxConnections(flags, 1 << 20), 16384U);
  EXPECT_EQ(MaxConnections(flags, UINT64_MAX), 16384U) << "there is no limit";
  EXPECT_EQ(MaxConnections(flags, 100), 64U);
  flags.max_connections = 20'000;
  EXPECT_EQ(MaxConnections(flags, 1024), 20'000U);
}

TEST_F(FlagsTest, AddressesFallBackToTheMoreGeneralOne) {
  Flags flags = Good({});
  EXPECT_EQ(GrpcHost(flags), "127.0.0.1");
  EXPECT_EQ(MetricsHost(flags), "127.0.0.1");
  flags = Good({"--http-address=127.0.0.2"});
  EXPECT_EQ(GrpcHost(flags), "127.0.0.1");
  EXPECT_EQ(HttpHost(flags), "127.0.0.2");
  EXPECT_EQ(MetricsHost(flags), "127.0.0.2");
  flags = Good({"--http-address=127.0.0.2", "--metrics-address=127.0.0.3", "--grpc-address=127.0.0.4"});
  EXPECT_EQ(MetricsHost(flags), "127.0.0.3");
  EXPECT_EQ(GrpcHost(flags), "127.0.0.4");
}

TEST_F(FlagsTest, OtherMachinesNeedAuthentication) {
  const std::string repository = "--model-repository=" + testing::TempDir();
  const Outcome open = ParseOnly({repository});
  EXPECT_EQ(open.exit_code, 2);
  EXPECT_THAT(open.error, AllOf(HasSubstr("--host"), HasSubstr("0.0.0.0"), HasSubstr("--insecure")));
  for (const char* port : {"--grpc-address", "--http-address", "--metrics-address"}) {
    EXPECT_THAT(Error({absl::StrCat(port, "=10.0.0.7")}), HasSubstr("10.0.0.7")) << port;
  }
  EXPECT_TRUE(Parse({"--metrics-address=10.0.0.7", "--plain-metrics"}).flags.has_value());
  EXPECT_TRUE(ParseOnly({repository, "--check-config"}).flags.has_value()) << "it opens no port";
  EXPECT_THAT(ParseOnly({repository, "--insecure"}).flags.value().warnings,
              ElementsAre(HasSubstr("everyone who can reach the ports has full access")));
  EXPECT_THAT(ParseOnly({repository, "--insecure", "--token-file=t"}).flags.value().warnings,
              ElementsAre(HasSubstr("tokens are sent over the network without TLS")));
  EXPECT_THAT(Error({"--grpc-address=0.0.0.0", "--token-file=t"}), HasSubstr("unencrypted"));
  EXPECT_TRUE(ParseOnly({repository, "--token-file=t", "--tls-cert=c", "--tls-key=k"}).flags.has_value());
}

TEST_F(FlagsTest, TheRepositoryIsRequiredAndExists) {
  const Outcome none = ParseOnly({"--host=127.0.0.1"});
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_THAT(none.error, HasSubstr("--model-repository: is missing; name the folder"));
  EXPECT_THAT(Error({"--model-repository=/no/such/folder"}), HasSubstr("/no/such/folder"));
  EXPECT_THAT(Good({"--model-store=" + testing::TempDir()}).model_repositories,
              ElementsAre(testing::TempDir(), testing::TempDir()));
  EXPECT_THAT(Good({"--model-control-mode=explicit", "--load-model=a", "--load-model=b"}).load_models,
              ElementsAre("a", "b"));
  EXPECT_THAT(Error({"--load-model=a"}), HasSubstr("--load-model: needs --model-control-mode=explicit"));
  EXPECT_THAT(Error({"--load-model=a", "--model-control-mode=poll"}), HasSubstr("--load-model"));
}

TEST_F(FlagsTest, UnknownFlagsAndWordsAreNamed) {
  EXPECT_THAT(Error({"--grpc-prot=1"}), HasSubstr("--grpc-prot"));
  EXPECT_THAT(Error({"word"}), HasSubstr("word"));
  EXPECT_THAT(ParseOnly({"--grpc-prot=1"}).error, HasSubstr("--grpc-prot"))
      << "named even if required flags are missing";
  EXPECT_THAT(Error({"--grpc-prot=1"}), HasSubstr("--grpc-prot is unknown; did you mean --grpc-port?"));
  EXPECT_THAT(Error({"--cores"}), HasSubstr("--cores needs a value: Cores that the daemon keeps busy"));
  EXPECT_THAT(Error({"word"}), HasSubstr("'word' is no flag; flags are written --flag=value"));
}

TEST_F(FlagsTest, HelpAndVersionEndWithoutAnError) {
  const Outcome help = ParseOnly({"--help"});
  EXPECT_FALSE(help.flags.has_value());
  EXPECT_EQ(help.exit_code, 0);
  for (const Number& number : kNumbers) EXPECT_THAT(help.out, HasSubstr(absl::StrCat("--", number.flag)));
  for (const Switch& one : kSwitches) EXPECT_THAT(help.out, HasSubstr(absl::StrCat("--", one.flag)));
  const Outcome version = ParseOnly({"--version"});
  EXPECT_EQ(version.exit_code, 0);
  EXPECT_THAT(version.out, HasSubstr("saccaded "));
}

TEST_F(FlagsTest, EveryFlagHasAnEnvironmentVariable) {
  const auto variable_of = [](const char* flag) {
    return absl::StrCat("SACCADED_", absl::AsciiStrToUpper(absl::StrReplaceAll(flag, {{"-", "_"}})));
  };
  for (const Number& number : kNumbers) {
    // The second name of a flag has no variable.
    if (std::string(number.flag) == "exit-timeout-secs") continue;
    const Variable set(variable_of(number.flag), Text(number.min));
    EXPECT_EQ(number.value(Good({})), number.min) << number.flag;
  }
  for (const Switch& one : kSwitches) {
    const Variable set(variable_of(one.flag), one.preset ? "false" : "true");
    EXPECT_EQ(one.value(Good({})), !one.preset) << one.flag;
  }
}

TEST_F(FlagsTest, TheCommandLineWinsOverTheEnvironmentAndThatOverTheFile) {
  const std::string file = testing::TempDir() + "/flags_test.conf";
  std::ofstream(file) << "grpc-port=1\nhttp-port=1\nmetrics-port=1\n";
  const Variable grpc("SACCADED_GRPC_PORT", "2");
  const Variable http("SACCADED_HTTP_PORT", "2");
  const Flags flags = Good({"--config=" + file, "--grpc-port=3"});
  EXPECT_EQ(flags.grpc_port, 3);
  EXPECT_EQ(flags.http_port, 2);
  EXPECT_EQ(flags.metrics_port, 1);
  const Variable wrong("SACCADED_METRICS_PORT", "70000");
  EXPECT_THAT(Error({}), HasSubstr("70000"));
  std::filesystem::remove(file);
}

// The library takes the next word as the value of "--flag=".
TEST_F(FlagsTest, AnEmptyValueIsNotTheNextFlag) {
  EXPECT_THAT(Error({"--log-level=", "--grpc-port=1"}), HasSubstr("--log-level"));
  const Flags flags = Good({"--load-model=", "--log-file=", "--grpc-port=1"});
  EXPECT_THAT(flags.load_models, ElementsAre(""));
  EXPECT_EQ(flags.grpc_port, 1);
  EXPECT_THAT(flags.warnings, IsEmpty());
}

TEST_F(FlagsTest, TheFileIsChecked) {
  const std::string file = testing::TempDir() + "/flags_test_wrong.conf";
  std::ofstream(file) << "grpc-prot=1\n";
  EXPECT_THAT(Error({"--config=" + file}),
              HasSubstr(file + ": --grpc-prot is unknown; did you mean --grpc-port?"));
  std::ofstream(file) << "grpc-port=70000\n";
  EXPECT_THAT(Error({"--config=" + file}), HasSubstr("grpc-port"));
  std::ofstream(file) << "grpc-port=1\n[server]\nhttp-port=1\n";
  EXPECT_THAT(Error({"--config=" + file}),
              AllOf(HasSubstr(file + ": the line '[server]'"),
                    HasSubstr("sections are not supported; expected one name=value")));
  std::ofstream(file) << "help=true\n";
  EXPECT_THAT(Error({"--config=" + file}), HasSubstr(file + ": --help cannot be in this file"));
  std::ofstream(file) << "latency-buckets=0.1,0.01\n";
  EXPECT_THAT(Error({"--config=" + file}), AllOf(HasSubstr("0.1,0.01"), HasSubstr("ascending")));
  EXPECT_THAT(Error({"--config=/no/such/file"}), HasSubstr("/no/such/file"));
  std::filesystem::remove(file);
}

TEST_F(FlagsTest, AValueInTheFileIsThatOfTheCommandLine) {
  const std::string file = testing::TempDir() + "/flags_test_values.conf";
  std::ofstream(file)
      << "# a comment\n ; another\n\nid = [Vision Server, #1 \nlatency-buckets=0.001,0.01,0.1\n"
         "state-folder=\"/data/my state\"\nallow-drills\n";
  const Flags flags = Good({"--config=" + file});
  EXPECT_EQ(flags.id, "[Vision Server, #1");
  EXPECT_THAT(flags.latency_buckets, ElementsAre(0.001, 0.01, 0.1));
  EXPECT_EQ(flags.state_folder, "/data/my state");
  EXPECT_TRUE(flags.permissions.drills);
  std::filesystem::remove(file);
}

TEST_F(FlagsTest, AFlagThatIsTwiceInTheFileIsTakenAsOnTheCommandLine) {
  const std::string file = testing::TempDir() + "/flags_test_twice.conf";
  std::ofstream(file)
      << "grpc-port=1\nload-model=a, b\npage=true\nallow-drills=true\nmodel-control-mode=explicit\n"
         "grpc-port=2\nload-model=c\npage=false\nallow-drills=false\n";
  const Flags flags = Good({"--config=" + file});
  EXPECT_EQ(flags.grpc_port, 2);
  EXPECT_THAT(flags.load_models, ElementsAre("a, b", "c"));
  EXPECT_FALSE(flags.page);
  EXPECT_FALSE(flags.permissions.drills);
  std::filesystem::remove(file);
}

// The program executes itself again and reads the file twice.
TEST_F(FlagsTest, TheFileIsNoPipe) {
  EXPECT_THAT(Error({"--config=/dev/null"}), HasSubstr("'/dev/null' is not a regular file"));
  const std::string pipe = testing::TempDir() + "/flags_test_pipe.conf";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_THAT(Error({"--config=" + pipe}), HasSubstr("is not a regular file"));
  std::filesystem::remove(pipe);
}

TEST_F(FlagsTest, ValuesAreTakenAsTritonTakesThem) {
  EXPECT_EQ(Good({"--model-control-mode=EXPLICIT"}).model_control, ModelControl::kExplicit);
  EXPECT_EQ(Good({"--log-verbose=true"}).log_level, LogLevel::kDebug);
  EXPECT_EQ(Good({"--log-verbose=False"}).log_level, LogLevel::kInfo);
  EXPECT_FALSE(Good({"--log-info=0"}).log_info);
  EXPECT_FALSE(Good({"--strict-readiness=FALSE"}).strict_readiness);
  EXPECT_EQ(Good({"--http-port=1", "--http-port=2"}).http_port, 2) << "the last one counts";
  EXPECT_EQ(Good({"--model-control-mode=explicit", "--load-model=a", "--load-model=b"}).load_models.size(),
            2u);
  EXPECT_EQ(Good({"--id=triton"}).id, "triton");
}

}  // namespace
}  // namespace saccade::server
