#include "server/grpc/grpc_web.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "absl/strings/escaping.h"
#include "server/grpc/testing/framing.h"

namespace saccade::server {
namespace {

TEST(GrpcForm, FollowsTheContentType) {
  EXPECT_EQ(FormOf("application/grpc"), GrpcForm::kGrpc);
  EXPECT_EQ(FormOf("application/grpc+proto"), GrpcForm::kGrpc);
  EXPECT_EQ(FormOf("Application/gRPC; charset=utf-8"), GrpcForm::kGrpc);
  EXPECT_EQ(FormOf("application/grpc-web"), GrpcForm::kWeb);
  EXPECT_EQ(FormOf("application/grpc-web+proto"), GrpcForm::kWeb);
  EXPECT_EQ(FormOf("application/grpc-web-text"), GrpcForm::kWebText);
  EXPECT_EQ(FormOf("application/grpc-web-text+proto"), GrpcForm::kWebText);
  for (const char* other : {"", "application/grpc+json", "application/grpc-web+thrift", "application/grpcx",
                            "application/json", "application/grpc-web-textual"}) {
    EXPECT_EQ(FormOf(other), std::nullopt) << other;
  }
}

TEST(Base64, DecodesTextsInAnyPieces) {
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    // Several texts, each with its own padding, as clients write them piece by piece.
    std::string bytes;
    std::string text;
    for (int part = 0; part < 5; ++part) {
      std::string some(random() % 20, '\0');
      for (char& c : some) c = static_cast<char>(random());
      bytes += some;
      text += absl::Base64Escape(some);
    }
    Base64Decoder decoder;
    std::string decoded;
    for (size_t at = 0; at < text.size();) {
      const size_t size = std::min<size_t>(1 + random() % 7, text.size() - at);
      ASSERT_TRUE(decoder.Decode(text.substr(at, size), decoded));
      at += size;
    }
    EXPECT_TRUE(decoder.complete());
    EXPECT_EQ(decoded, bytes);
  }
}

TEST(Base64, RefusesOtherText) {
  for (const char* wrong : {"AA*A", "=AAA", "A=AA", "AA=A", "A A=", "AAAA\n", "===="}) {
    Base64Decoder decoder;
    std::string decoded;
    EXPECT_FALSE(decoder.Decode(wrong, decoded)) << wrong;
  }
  Base64Decoder decoder;
  std::string decoded;
  EXPECT_TRUE(decoder.Decode("AAA", decoded));
  EXPECT_FALSE(decoder.complete());
}

TEST(Trailers, AreAMessageWithTheHighestFlag) {
  EXPECT_EQ(TrailersMessage({{"grpc-status", "5"}, {"grpc-message", "no"}}),
            Framed("grpc-status: 5\r\ngrpc-message: no\r\n", static_cast<char>(0x80)));
}

}  // namespace
}  // namespace saccade::server
