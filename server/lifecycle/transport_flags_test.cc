// Flags of HTTP/2 connections and of tritonserver.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>

#include <string>
#include <vector>

#include "server/lifecycle/grpc_flags.h"
#include "server/lifecycle/triton_flags.h"

namespace saccade::server {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;
using testing::UnorderedElementsAre;

// Parses one command line of a fresh program, in which only these flags exist.
class Program {
 public:
  Program() {
    AddGrpcFlags(app_, &limits_);
    AddTritonFlags(app_, &warnings_);
  }

  // Returns the error, or "".
  std::string Parse(std::vector<std::string> words) {
    // CLI11 takes the words in reverse order.
    std::reverse(words.begin(), words.end());
    try {
      app_.parse(words);
      return "";
    } catch (const CLI::ParseError& error) {
      return error.what();
    }
  }

  const HttpLimits& limits() const { return limits_; }
  const std::vector<std::string>& warnings() const { return warnings_; }
  std::string Help() const { return app_.help(); }

 private:
  CLI::App app_;
  HttpLimits limits_;
  std::vector<std::string> warnings_;
};

TEST(GrpcFlagsTest, WithoutFlagsTheDefaultsHold) {
  Program program;
  EXPECT_EQ(program.Parse({}), "");
  EXPECT_EQ(program.limits().keepalive_time, absl::Seconds(60));
  EXPECT_EQ(program.limits().keepalive_timeout, absl::Seconds(20));
  EXPECT_FALSE(program.limits().keepalive_without_calls);
  EXPECT_EQ(program.limits().max_connection_age, absl::InfiniteDuration());
  EXPECT_EQ(program.limits().max_connection_age_grace, absl::InfiniteDuration());
}

TEST(GrpcFlagsTest, ValuesAreMilliseconds) {
  Program program;
  EXPECT_EQ(program.Parse({"--grpc-keepalive-time=1", "--grpc-keepalive-timeout=2000",
                           "--grpc-max-connection-age=2147483647", "--grpc-max-connection-age-grace=0",
                           "--grpc-keepalive-permit-without-calls=true"}),
            "");
  EXPECT_EQ(program.limits().keepalive_time, absl::Milliseconds(1));
  EXPECT_EQ(program.limits().keepalive_timeout, absl::Seconds(2));
  EXPECT_EQ(program.limits().max_connection_age, absl::Milliseconds(2147483647));
  EXPECT_EQ(program.limits().max_connection_age_grace, absl::ZeroDuration());
  EXPECT_TRUE(program.limits().keepalive_without_calls);
}

TEST(GrpcFlagsTest, ValuesHaveBounds) {
  for (const char* wrong :
       {"--grpc-keepalive-time=0", "--grpc-keepalive-timeout=0", "--grpc-keepalive-time=2147483648",
        "--grpc-max-connection-age=0", "--grpc-max-connection-age-grace=-1", "--grpc-keepalive-time=1.5",
        "--grpc-keepalive-permit-without-calls=often"}) {
    Program program;
    const std::string flag = std::string(wrong).substr(0, std::string(wrong).find('='));
    EXPECT_THAT(program.Parse({wrong}), HasSubstr(flag)) << wrong;
    EXPECT_EQ(program.limits().keepalive_time, absl::Seconds(60)) << wrong;
  }
}

TEST(TritonFlagsTest, PingStrikesAreOneRateForAllControlFrames) {
  Program program;
  EXPECT_EQ(program.Parse({"--grpc-http2-max-pings-without-data=0"}), "");
  EXPECT_THAT(program.warnings(), IsEmpty()) << "that is what the server does";
  EXPECT_EQ(program.Parse({"--grpc-http2-max-pings-without-data=2", "--grpc-http2-max-ping-strikes=2",
                           "--grpc-http2-min-recv-ping-interval-without-data=300000"}),
            "");
  EXPECT_THAT(program.warnings(),
              ElementsAre(AllOf(HasSubstr("--grpc-http2-max-pings-without-data is ignored: "),
                                HasSubstr("--grpc-keepalive-time")),
                          HasSubstr("--grpc-http2-min-recv-ping-interval-without-data is ignored: "),
                          AllOf(HasSubstr("--grpc-http2-max-ping-strikes is ignored: "),
                                HasSubstr("100 pings in a second"))));
  EXPECT_EQ(HttpLimits().max_control_frames_per_second, 100) << "the note names it";
}

TEST(TritonFlagsTest, TheValueWithoutEffectIsSilent) {
  Program program;
  EXPECT_EQ(
      program.Parse({"--allow-http=true", "--log-file", "", "--trace-level=OFF", "--grpc-use-ssl=false"}),
      "");
  EXPECT_THAT(program.warnings(), IsEmpty());
  EXPECT_EQ(
      program.Parse({"--allow-http=TRUE", "--allow-grpc=1", "--grpc-use-ssl=0", "--reuse-grpc-port=False"}),
      "");
  EXPECT_THAT(program.warnings(), IsEmpty());
  EXPECT_THAT(program.Parse({"--allow-http=0"}), HasSubstr("--allow-http: is '0'"));
}

TEST(TritonFlagsTest, FlagsWithoutEffectForClientsAreIgnoredWithAWarning) {
  Program program;
  EXPECT_EQ(
      program.Parse({"--rate-limit=a", "--backend-config=tensorflow,version=2", "--backend-config=b,c=d"}),
      "");
  EXPECT_THAT(program.warnings(), UnorderedElementsAre(HasSubstr("--rate-limit is ignored: "),
                                                       HasSubstr("--backend-config is ignored: "),
                                                       HasSubstr("--backend-config is ignored: ")));
}

TEST(TritonFlagsTest, FlagsThatClientsWouldMissAreRejectedWithAdvice) {
  Program program;
  EXPECT_THAT(program.Parse({"--http-restricted-api=infer:a=b"}),
              AllOf(HasSubstr("--http-restricted-api"), HasSubstr("is 'infer:a=b'"),
                    HasSubstr("not supported by saccaded"), HasSubstr("use --token-file")));
}

// A value is quoted in an error, which goes to a terminal and into logs.
TEST(TritonFlagsTest, QuotedValuesAreEscapedAndShortened) {
  Program program;
  const std::string error = program.Parse({"--log-file=\x1b[31m\n" + std::string(1000, 'x')});
  EXPECT_THAT(error, AllOf(Not(HasSubstr("\x1b")), Not(HasSubstr("\n")), HasSubstr("\\n")));
  EXPECT_LT(error.size(), 300U);
}

TEST(TritonFlagsTest, TracingIsDescribedAsItIs) {
  Program program;
  EXPECT_EQ(program.Parse({"--trace-config=triton,file=trace.json", "--trace-level=TIMESTAMPS"}), "");
  ASSERT_THAT(program.warnings(), SizeIs(2));
  EXPECT_THAT(program.warnings()[0],
              AllOf(HasSubstr("OpenTelemetry"), HasSubstr("OTEL_EXPORTER_OTLP_ENDPOINT")));
}

TEST(TritonFlagsTest, HelpDoesNotShowThem) {
  const Program program;
  EXPECT_THAT(program.Help(), AllOf(HasSubstr("--grpc-keepalive-time"), Not(HasSubstr("--trace-config"))));
}

}  // namespace
}  // namespace saccade::server
