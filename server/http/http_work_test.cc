// Where requests are handled: on the loop, or on one of the pools.
#include <cstdint>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/http/content_coding.h"
#include "server/http/http_service.h"
#include "server/http/testing/test_service.h"

namespace saccade::server {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class WorkTest : public ::testing::Test {
 protected:
  // The thread that handled the last request, and when that arrived.
  std::thread::id ran_on_;
  absl::Time arrival_;
  HttpHandler handler_ = Text([this](const HttpRequest& request) {
    ran_on_ = std::this_thread::get_id();
    arrival_ = request.arrival;
    return "done";
  });
  // Length of the response of /text.
  size_t text_bytes_ = 0;
  // The route /raw parses nothing of its bodies, /part a tenth, and /more far more than they have.
  TestService service_{
      {{"GET", "/blocks", handler_, true},
       {"GET", "/text", Text([this](const HttpRequest&) { return std::string(text_bytes_, 'x'); })},
       {"POST", "/quick", handler_},
       {"POST", "/raw", handler_, false, [](const HttpHeaders&, absl::string_view) { return size_t{0}; }},
       {"POST", "/part", handler_, false,
        [](const HttpHeaders&, absl::string_view body) { return body.size() / 10; }},
       {"POST", "/more", handler_, false, [](const HttpHeaders&, absl::string_view) { return SIZE_MAX; }}}};
};

TEST_F(WorkTest, WhatMayBlockRunsOnThePool) {
  EXPECT_THAT(service_.Ask(Get("/blocks")), EndsWith("done"));
  EXPECT_NE(ran_on_, std::this_thread::get_id());
  EXPECT_THAT(service_.Ask(Post("/quick", "small")), EndsWith("done"));
  EXPECT_EQ(ran_on_, std::this_thread::get_id());
}

// How long a body takes to decode is known when it is decoded.
TEST_F(WorkTest, CompressedBodiesAreNotDecodedOnTheLoop) {
  const absl::string_view pieces[] = {"small"};
  for (const auto coding : {ContentCoding::kGzip, ContentCoding::kDeflate}) {
    ran_on_ = std::this_thread::get_id();
    const std::string headers = absl::StrCat("Content-Encoding: ", NameOf(coding), "\r\n");
    EXPECT_THAT(service_.Ask(Post("/raw", Encode(coding, pieces), headers)), EndsWith("done"));
    EXPECT_NE(ran_on_, std::this_thread::get_id()) << headers;
  }
}

// Parsing 32 KiB of JSON takes up to 9 ms, and a connection may have hundreds of such requests.
TEST_F(WorkTest, BodiesOfAKilobyteAreNotHandledOnTheLoop) {
  EXPECT_THAT(service_.Ask(Post("/quick", std::string(1000, 'x'))), EndsWith("done"));
  EXPECT_NE(ran_on_, std::this_thread::get_id());
  const std::string text(30'000, 'x');
  const absl::string_view pieces[] = {text};
  const std::string small = Encode(ContentCoding::kGzip, pieces);
  ASSERT_LT(small.size(), 200u);
  ran_on_ = std::this_thread::get_id();
  EXPECT_THAT(service_.Ask(Post("/quick", small, "Content-Encoding: gzip\r\n")), EndsWith("done"));
  EXPECT_NE(ran_on_, std::this_thread::get_id());
}

TEST_F(WorkTest, WhatIsNotParsedIsHandledOnTheLoop) {
  EXPECT_THAT(service_.Ask(Post("/raw", std::string(1'000'000, 'x'))), EndsWith("done"));
  EXPECT_EQ(ran_on_, std::this_thread::get_id());
  EXPECT_THAT(service_.Ask(Post("/raw", std::string((1 << 20) + 1, 'x'))), EndsWith("done"));
  EXPECT_NE(ran_on_, std::this_thread::get_id());
  EXPECT_THAT(service_.Ask(Post("/part", std::string(2569, 'x'))), EndsWith("done"));
  EXPECT_EQ(ran_on_, std::this_thread::get_id());
  EXPECT_THAT(service_.Ask(Post("/part", std::string(2570, 'x'))), EndsWith("done"));
  EXPECT_NE(ran_on_, std::this_thread::get_id());
}

// Such as tensors in shared memory.
TEST_F(WorkTest, ASmallBodyThatNamesMuchIsHandledOnThePoolForLargeOnes) {
  absl::Notification go;
  ASSERT_TRUE(service_.pool.Submit("test", [&go] { go.WaitForNotification(); }));
  const auto connection = service_.Connect();
  connection->Send(Post("/more", "x"));
  service_.FinishWork(service_.short_pool);
  EXPECT_EQ(connection->TakeOutput(), "");
  go.Notify();
  service_.FinishWork();
  EXPECT_THAT(connection->TakeOutput(), EndsWith("done"));
}

TEST_F(WorkTest, AnswersOverAFewKilobytesAreNotCompressedOnTheLoop) {
  absl::Notification go, go_large;
  ASSERT_TRUE(service_.short_pool.Submit("test", [&go] { go.WaitForNotification(); }));
  ASSERT_TRUE(service_.pool.Submit("test", [&go_large] { go_large.WaitForNotification(); }));
  const auto ask = [this](size_t bytes) {
    text_bytes_ = bytes;
    auto connection = service_.Connect();
    connection->Send(Get("/text", "Accept-Encoding: gzip\r\n"));
    service_.loop.RunUntilIdle();
    return connection;
  };
  constexpr char kCompressed[] = "\r\nContent-Encoding: gzip\r\n";
  EXPECT_THAT(ask(4096)->TakeOutput(), HasSubstr(kCompressed));
  const auto brief = ask(4097), large = ask((256 << 10) + 1);
  EXPECT_EQ(brief->TakeOutput() + large->TakeOutput(), "");
  go.Notify();
  service_.FinishWork(service_.short_pool);
  EXPECT_THAT(brief->TakeOutput(), HasSubstr(kCompressed));
  EXPECT_EQ(large->TakeOutput(), "");
  go_large.Notify();
  service_.FinishWork();
  EXPECT_THAT(large->TakeOutput(), HasSubstr(kCompressed));
}

// No pool has room, so that nothing could be compressed there.
TEST_F(WorkTest, AnswersToHeadAreNotCompressed) {
  WorkPool full(0, 0);
  service_.options.pool = service_.options.short_pool = &full;
  const auto head = [this](size_t bytes, absl::string_view headers) {
    text_bytes_ = bytes;
    return service_.Ask(absl::StrCat("HEAD /text HTTP/1.1\r\nHost: test\r\n", headers, "\r\n"));
  };
  constexpr char kAccepts[] = "Accept-Encoding: gzip\r\n";
  for (const size_t bytes : {300u, 5000u, (256u << 10) + 1}) {
    const std::string coded = head(bytes, kAccepts);
    EXPECT_THAT(coded, AllOf(StartsWith("HTTP/1.1 200 "), HasSubstr("\r\nContent-Encoding: gzip\r\n"),
                             EndsWith("\r\n\r\n")));
    // The length of the compressed text is not known.
    EXPECT_THAT(coded, Not(HasSubstr("Content-Length"))) << bytes;
    EXPECT_THAT(head(bytes, ""), HasSubstr(absl::StrCat("\r\nContent-Length: ", bytes, "\r\n")));
  }
  EXPECT_THAT(head(100, kAccepts), HasSubstr("\r\nContent-Length: 100\r\n")) << "too short to be compressed";
}

TEST_F(WorkTest, WhatIsNotParsedDoesNotMakeABodyLarge) {
  service_.options.max_short_bytes = 1000;
  absl::Notification go;
  ASSERT_TRUE(service_.pool.Submit("test", [&go] { go.WaitForNotification(); }));
  const auto part = service_.Connect();
  part->Send(Post("/part", std::string(10'000, 'x')));
  service_.FinishWork(service_.short_pool);
  EXPECT_THAT(part->TakeOutput(), EndsWith("done"));
  go.Notify();
  // The task is done with `go`.
  service_.FinishWork();
}

TEST_F(WorkTest, ShortBodiesDoNotWaitForLargeOnes) {
  service_.options.max_short_bytes = 2000;
  absl::Notification go;
  ASSERT_TRUE(service_.pool.Submit("test", [&go] { go.WaitForNotification(); }));
  const std::string large(2001, 'x');
  const absl::string_view pieces[] = {large};
  const auto coded = service_.Connect(), plain = service_.Connect(), brief = service_.Connect();
  coded->Send(Post("/quick", Encode(ContentCoding::kGzip, pieces), "Content-Encoding: gzip\r\n"));
  plain->Send(Post("/quick", large));
  brief->Send(Post("/quick", std::string(2000, 'x')));
  service_.FinishWork(service_.short_pool);
  EXPECT_THAT(brief->TakeOutput(), EndsWith("done"));
  EXPECT_EQ(coded->TakeOutput() + plain->TakeOutput(), "");
  go.Notify();
  service_.FinishWork();
  EXPECT_THAT(coded->TakeOutput(), EndsWith("done"));
  EXPECT_THAT(plain->TakeOutput(), EndsWith("done"));
}

TEST_F(WorkTest, LargeBodiesAreHandledOnThePool) {
  service_.options.max_bytes_on_loop = 1000;
  EXPECT_THAT(service_.Ask(Post("/quick", std::string(1000, 'x'))), EndsWith("done"));
  EXPECT_EQ(ran_on_, std::this_thread::get_id());
  EXPECT_THAT(service_.Ask(Post("/quick", std::string(1001, 'x'))), EndsWith("done"));
  EXPECT_NE(ran_on_, std::this_thread::get_id());
}

// Empty blocks take input and produce no output, so that a body which becomes small may take long.
TEST_F(WorkTest, EmptyBlocksAreDecodedOnThePool) {
  const auto with_blocks = [](int count) {
    std::string body = "\x78\x9c";
    for (int i = 0; i < count; ++i) body += std::string("\0\0\0\xff\xff", 5);
    // A last block without bytes, and the checksum of nothing.
    return Post("/quick", body + std::string("\1\0\0\xff\xff\0\0\0\1", 9), "Content-Encoding: deflate\r\n");
  };
  // The last are more than a pool decodes at once.
  for (const int count : {0, 300, 500'000}) {
    ran_on_ = std::this_thread::get_id();
    EXPECT_THAT(service_.Ask(with_blocks(count)), EndsWith("done")) << count;
    EXPECT_NE(ran_on_, std::this_thread::get_id()) << count;
  }
}

TEST_F(WorkTest, ARequestArrivesWithItsBodyAndBeforeItWaits) {
  absl::Notification go;
  ASSERT_TRUE(service_.short_pool.Submit("test", [&go] { go.WaitForNotification(); }));
  const auto connection = service_.Connect();
  const std::string request = Post("/quick", std::string(1000, 'x'));
  connection->Send(request.substr(0, request.size() - 1));
  service_.loop.Advance(absl::Seconds(1));
  const absl::Time whole = service_.loop.Now();
  connection->Send(request.substr(request.size() - 1));
  service_.loop.Advance(absl::Seconds(5));
  go.Notify();
  EXPECT_THAT(service_.Ask(*connection, ""), EndsWith("done"));
  EXPECT_EQ(arrival_, whole);
}

TEST_F(WorkTest, AFullPoolAnswers503) {
  WorkPool full(0, 0);
  service_.options.pool = &full;
  EXPECT_THAT(service_.Ask(Get("/blocks")),
              AllOf(StartsWith("HTTP/1.1 503 "), HasSubstr("\r\nRetry-After: 1\r\n"), HasSubstr("threads")));
  EXPECT_THAT(service_.Ask(Post("/quick", "small")), EndsWith("done"));
}

TEST_F(WorkTest, WhatNobodyWaitsForIsNotRun) {
  absl::Notification go;
  ASSERT_TRUE(service_.pool.Submit("test", [&go] { go.WaitForNotification(); }));
  const auto connection = service_.Connect();
  connection->Send(Get("/blocks"));
  connection->Break();
  go.Notify();
  service_.FinishWork();
  EXPECT_EQ(ran_on_, std::thread::id());
}

}  // namespace
}  // namespace saccade::server
