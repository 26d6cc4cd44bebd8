#include "server/grpc/reflection.h"

#include <gmock/gmock.h>
#include <google/protobuf/descriptor.pb.h>

#include "grpc/health/v1/health.pb.h"
#include "grpc/reflection/v1/reflection.pb.h"
#include "grpc/reflection/v1alpha/reflection.pb.h"
#include "server/grpc/testing/handler_fixture.h"

namespace saccade::server {
namespace {

using grpc::reflection::v1::ServerReflectionRequest;
using grpc::reflection::v1::ServerReflectionResponse;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// The tests run for both versions of the service, whose messages have the same fields.
class ReflectionTest : public GrpcHandlerTest, public testing::WithParamInterface<const char*> {
 protected:
  ReflectionTest() {
    grpc::health::v1::HealthCheckRequest::descriptor();
    Handler(ReflectionMethods({"grpc.health.v1.Health"}));
    stream_ =
        BeginAt(FakeExchange::Head(std::string("/") + GetParam() + ".ServerReflection/ServerReflectionInfo"));
  }

  ServerReflectionResponse Ask(const ServerReflectionRequest& request) {
    const size_t before = stream_->answer().body.size();
    stream_->SendBodyPart(Framed(request.SerializeAsString()));
    ServerReflectionResponse response;
    const std::string answer = stream_->answer().body.substr(before);
    EXPECT_GE(answer.size(), kMessagePrefixBytes);
    EXPECT_TRUE(answer.size() >= kMessagePrefixBytes &&
                response.ParseFromString(answer.substr(kMessagePrefixBytes)));
    EXPECT_EQ(response.original_request().SerializeAsString(), request.SerializeAsString());
    return response;
  }

  static std::vector<std::string> FilesIn(const ServerReflectionResponse& response) {
    EXPECT_TRUE(response.has_file_descriptor_response());
    std::vector<std::string> names;
    for (const std::string& bytes : response.file_descriptor_response().file_descriptor_proto()) {
      google::protobuf::FileDescriptorProto file;
      EXPECT_TRUE(file.ParseFromString(bytes));
      names.push_back(file.name());
    }
    return names;
  }

  std::unique_ptr<FakeExchange> stream_;
};

INSTANTIATE_TEST_SUITE_P(Versions, ReflectionTest,
                         testing::Values("grpc.reflection.v1", "grpc.reflection.v1alpha"));

TEST_P(ReflectionTest, ListsServices) {
  ServerReflectionRequest request;
  request.set_host("me");
  request.set_list_services("*");
  const ServerReflectionResponse response = Ask(request);
  EXPECT_EQ(response.valid_host(), "me");
  std::vector<std::string> names;
  for (const auto& service : response.list_services_response().service()) names.push_back(service.name());
  EXPECT_THAT(names, ElementsAre("grpc.health.v1.Health", "grpc.reflection.v1.ServerReflection",
                                 "grpc.reflection.v1alpha.ServerReflection"));
}

TEST_P(ReflectionTest, FindsFilesByNameAndSymbol) {
  ServerReflectionRequest request;
  request.set_file_by_filename("grpc/health/v1/health.proto");
  EXPECT_THAT(FilesIn(Ask(request)), ElementsAre("grpc/health/v1/health.proto"));
  // It was sent before.
  request.set_file_containing_symbol("grpc.health.v1.Health.Check");
  EXPECT_THAT(FilesIn(Ask(request)), IsEmpty());
  request.set_file_containing_symbol(std::string(GetParam()) + ".ServerReflection");
  EXPECT_THAT(FilesIn(Ask(request)), ElementsAre(HasSubstr("/reflection.proto")));
}

TEST_P(ReflectionTest, KnowsExtensions) {
  ServerReflectionRequest request;
  request.set_all_extension_numbers_of_type("google.protobuf.MessageOptions");
  const auto response = Ask(request);
  EXPECT_EQ(response.all_extension_numbers_response().base_type_name(), "google.protobuf.MessageOptions");
}

TEST_P(ReflectionTest, TellsWhatItDoesNotKnow) {
  ServerReflectionRequest file;
  file.set_file_by_filename("nope.proto");
  EXPECT_EQ(Ask(file).error_response().error_code(), 5);
  ServerReflectionRequest symbol;
  symbol.set_file_containing_symbol("nope.Service");
  EXPECT_THAT(Ask(symbol).error_response().error_message(), HasSubstr("nope.Service"));
  ServerReflectionRequest extension;
  extension.mutable_file_containing_extension()->set_containing_type("nope.Type");
  EXPECT_EQ(Ask(extension).error_response().error_code(), 5);
  ServerReflectionRequest numbers;
  numbers.set_all_extension_numbers_of_type("nope.Type");
  EXPECT_EQ(Ask(numbers).error_response().error_code(), 5);
  EXPECT_EQ(Ask(ServerReflectionRequest()).error_response().error_code(), 3);
  EXPECT_FALSE(stream_->over());
}

TEST_P(ReflectionTest, NamesThatAreLongAreNotLookedFor) {
  for (const std::string& name : {std::string(4000, '.'), std::string(513, 'a'), std::string(33, '.')}) {
    ServerReflectionRequest file;
    file.set_file_by_filename(name);
    ServerReflectionRequest symbol;
    symbol.set_file_containing_symbol(name);
    ServerReflectionRequest extension;
    extension.mutable_file_containing_extension()->set_containing_type(name);
    ServerReflectionRequest numbers;
    numbers.set_all_extension_numbers_of_type(name);
    const std::pair<ServerReflectionRequest, const char*> kinds[] = {
        {file, "file"}, {symbol, "symbol"}, {extension, "extension of"}, {numbers, "message type"}};
    for (const auto& [request, what] : kinds) {
      const auto error = Ask(request).error_response();
      EXPECT_EQ(error.error_code(), 5);
      EXPECT_THAT(error.error_message(),
                  HasSubstr(std::string("knows no ") + what + " '" + name.substr(0, 33)))
          << "the beginning is told";
      EXPECT_LT(error.error_message().size(), 200);
    }
  }
}

TEST_P(ReflectionTest, EndsWithTheStream) {
  stream_->EndBody();
  EXPECT_EQ(stream_->answer().Field("grpc-status"), "0");
}

TEST_P(ReflectionTest, RequestsOfAStreamAreBounded) {
  ServerReflectionRequest request;
  request.set_file_by_filename("nope.proto");
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(Ask(request).error_response().error_code(), 5) << i;
  EXPECT_FALSE(stream_->over());
  stream_->SendBodyPart(Framed(request.SerializeAsString()));
  EXPECT_EQ(stream_->answer().Field("grpc-status"), "8");
  EXPECT_EQ(stream_->answer().Field("grpc-message"),
            "a stream of reflection has at most 1000 requests; open another one");
}

TEST_P(ReflectionTest, RefusesOtherMessages) {
  stream_->SendBodyPart(Framed("\xFF\xFF"));
  EXPECT_EQ(stream_->answer().Field("grpc-status"), "3");
}

}  // namespace
}  // namespace saccade::server
