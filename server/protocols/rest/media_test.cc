#include "server/protocols/rest/media.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace saccade::server {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr absl::string_view kTypes[] = {"image/png", "application/octet-stream"};
constexpr char kForm[] = "application/x-www-form-urlencoded";

HttpRequest Sent(const std::string& type, HttpHeaders more = {}) {
  HttpRequest request;
  request.headers = std::move(more);
  request.headers.emplace_back("content-type", type);
  return request;
}

TEST(RestMediaTest, ParametersAndCaseDoNotMatter) {
  EXPECT_EQ(MediaTypeOf(Sent("Image/PNG; charset=utf-8")), "image/png");
  EXPECT_EQ(MediaTypeOf(Sent("image/png ;x")), "image/png");
  EXPECT_EQ(MediaTypeOf(Sent("image/pngx")), "image/pngx");
  EXPECT_EQ(MediaTypeOf(HttpRequest()), "");
}

TEST(RestMediaTest, OtherTypesAreRefused) {
  EXPECT_FALSE(CheckMediaType(Sent("image/png"), kTypes));
  EXPECT_FALSE(CheckMediaType(Sent("application/octet-stream"), kTypes));
  EXPECT_FALSE(CheckMediaType(HttpRequest(), kTypes));
  for (const char* type : {"image/gif", "text/plain", "image/pngx", "multipart/form-data; boundary=x"}) {
    const auto refusal = CheckMediaType(Sent(type), kTypes);
    ASSERT_TRUE(refusal) << type;
    EXPECT_EQ(refusal->status, 415);
    EXPECT_THAT(refusal->body, HasSubstr("expected image/png, application/octet-stream, or none"));
    EXPECT_EQ(absl::StrContains(refusal->body, "curl --data-binary @FILE"),
              absl::StartsWith(type, "multipart/"));
  }
}

TEST(RestMediaTest, AFileInPlaceOfJsonIsToldWhereItGoes) {
  for (const absl::string_view body :
       {absl::string_view("\xFF\xD8\xFF\xE0"), absl::string_view("\x89PNG\r\n"),
        absl::string_view("RIFF1234WEBP"), absl::string_view("II*\0....", 8),
        absl::string_view("\0\0\0\x18"
                          "ftypmp42",
                          12)}) {
    EXPECT_THAT(std::string(CheckIsNoFile(body).message()),
                AllOf(HasSubstr("/v1/predict/MODEL"), HasSubstr("Inference-Header-Content-Length: 0")));
  }
  for (const char* body : {"", "{", "{}", " {\"inputs\": []}", "RIF", "ftyp"})
    EXPECT_TRUE(CheckIsNoFile(body).ok()) << body;
}

// A file as curl -d sends it.
HttpRequest Stripped(absl::string_view file, const std::string& type = kForm) {
  HttpRequest request = Sent(type);
  auto left = std::make_shared<std::string>(file);
  left->erase(std::remove_if(left->begin(), left->end(),
                             [](char byte) { return byte == '\0' || byte == '\r' || byte == '\n'; }),
              left->end());
  request.body = *left;
  request.body_owner = std::move(left);
  return request;
}

TEST(RestMediaTest, AFileThatCurlHasStrippedIsToldFromAWholeOne) {
  for (const absl::string_view file :
       {absl::string_view("\xFF\xD8\xFF\xE0\0\x10JFIF\0\n", 12),
        absl::string_view("\x89PNG\r\n\x1A\n\0\0\0\rIHDR", 16), absl::string_view("RIFF\x18\0\0\0WEBP", 12),
        absl::string_view("II*\0\x08\0\0\0", 8), absl::string_view("MM\0*\0\0\0\x08", 8),
        absl::string_view("BM\x46\0\0\0", 6),
        absl::string_view("\0\0\0\x18"
                          "ftypmp42",
                          12)}) {
    const std::string why(CheckIsWholeFile(Stripped(file)).message());
    EXPECT_THAT(
        why, AllOf(HasSubstr("'application/x-www-form-urlencoded'"), HasSubstr("curl --data-binary @FILE")));
    EXPECT_THAT(std::string(CheckIsWholeFile(Stripped(file, "image/png")).message()),
                HasSubstr("'image/png'"));
    HttpRequest whole = Sent(kForm);
    whole.body = file;
    EXPECT_TRUE(CheckIsWholeFile(whole).ok());
  }
  for (const char* body : {"", "words", "{\"inputs\":[]}"})
    EXPECT_TRUE(CheckIsWholeFile(Stripped(body)).ok()) << body;
  HttpRequest untyped;
  untyped.body = "\xFF\xD8\xFF\xE0";
  EXPECT_THAT(std::string(CheckIsWholeFile(untyped).message()), HasSubstr("Content-Type is not set"));
  // A network thread does not search a large body.
  const std::string late = "BM" + std::string(256 << 10, 'x') + "\n";
  untyped.body = late;
  EXPECT_FALSE(CheckIsWholeFile(untyped).ok());
}

TEST(RestMediaTest, FormsAreCurlsAndNotABrowsers) {
  EXPECT_FALSE(CheckMediaType(Sent(kForm), kTypes));
  EXPECT_TRUE(CheckMediaType(Sent(kForm, {{"origin", "https://example.org"}}), kTypes));
  EXPECT_TRUE(CheckMediaType(Sent(kForm, {{"sec-fetch-site", "same-origin"}}), kTypes));
  EXPECT_FALSE(CheckMediaType(Sent("image/png", {{"sec-fetch-site", "same-origin"}}), kTypes));
}

TEST(RestMediaTest, HandlersAreCalledForJsonAndBinaryOnly) {
  int called = 0;
  const HttpRoute route = TakingJsonOrBinary(
      {.method = "POST",
       .path = "/",
       .handler = [&called](const std::shared_ptr<const HttpRequest>&, const HttpReply& reply) {
         ++called;
         reply(HttpResponse());
       }});
  int status = 0;
  const auto send = [&](const HttpRequest& request) {
    route.handler(std::make_shared<const HttpRequest>(request),
                  [&status](const HttpResponse& response) { status = response.status; });
    EXPECT_EQ(route.check_head(request).has_value(), status != 200) << "the head shows it";
    return status;
  };
  EXPECT_EQ(send(Sent("application/json; charset=utf-8")), 200);
  EXPECT_EQ(send(Sent("application/octet-stream")), 200);
  EXPECT_EQ(send(Sent(kForm)), 200);
  EXPECT_EQ(send(HttpRequest()), 200);
  EXPECT_EQ(called, 4);
  EXPECT_EQ(send(Sent("image/png")), 415);
  EXPECT_EQ(called, 4);
}

}  // namespace
}  // namespace saccade::server
