#include "server/grpc/metadata.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace saccade::server {
namespace {

using testing::ElementsAre;
using testing::EndsWith;
using testing::Pair;

TEST(StatusMessage, EncodesWhatIsNotPrintableAscii) {
  EXPECT_EQ(EncodeStatusMessage("plain text, with 'signs' ~"), "plain text, with 'signs' ~");
  EXPECT_EQ(EncodeStatusMessage("100% of\r\n"), "100%25 of%0D%0A");
  EXPECT_EQ(EncodeStatusMessage("\xF0\x9F\x98\x88"), "%F0%9F%98%88");
  EXPECT_EQ(EncodeStatusMessage("\x7F"), "%7F");
  EXPECT_EQ(EncodeStatusMessage(""), "");
}

TEST(StatusMessage, CutsLongMessagesBetweenCharacters) {
  EXPECT_EQ(EncodeStatusMessage(std::string(kMaxStatusMessageBytes, 'x')).size(), kMaxStatusMessageBytes);
  const std::string cut = EncodeStatusMessage(std::string(kMaxStatusMessageBytes + 1, 'x'));
  EXPECT_EQ(cut.size(), kMaxStatusMessageBytes);
  EXPECT_THAT(cut, EndsWith("xxx..."));
  // Each of these characters takes 6 bytes, which do not divide what is left beside the dots.
  std::string umlauts;
  for (int i = 0; i < 5000; ++i) umlauts += "\xC3\xA4";
  const std::string encoded = EncodeStatusMessage(umlauts);
  EXPECT_LE(encoded.size(), kMaxStatusMessageBytes);
  EXPECT_GT(encoded.size(), kMaxStatusMessageBytes - 12);
  EXPECT_THAT(encoded, EndsWith("%C3%A4..."));
}

TEST(Binary, IsBase64WithOrWithoutPadding) {
  EXPECT_EQ(EncodeBinary(std::string("\x00\xFF", 2)), "AP8");
  EXPECT_EQ(DecodeBinary("AP8"), std::string("\x00\xFF", 2));
  EXPECT_EQ(DecodeBinary("AP8="), std::string("\x00\xFF", 2));
  EXPECT_EQ(DecodeBinary(""), "");
  EXPECT_EQ(DecodeBinary("A*8="), std::nullopt);
}

TEST(Timeout, HasDigitsAndAUnit) {
  EXPECT_EQ(ParseTimeout("2H"), absl::Hours(2));
  EXPECT_EQ(ParseTimeout("3M"), absl::Minutes(3));
  EXPECT_EQ(ParseTimeout("4S"), absl::Seconds(4));
  EXPECT_EQ(ParseTimeout("99999999m"), absl::Milliseconds(99999999));
  EXPECT_EQ(ParseTimeout("5u"), absl::Microseconds(5));
  EXPECT_EQ(ParseTimeout("0n"), absl::ZeroDuration());
  for (const char* wrong : {"", "S", "5", "-1S", "1.5S", "5s", "123456789S", "5 S"}) {
    EXPECT_EQ(ParseTimeout(wrong), std::nullopt) << wrong;
  }
}

TEST(End, NamesCodeMessageDetailsAndTrailers) {
  EXPECT_THAT(EndFields({absl::OkStatus()}), ElementsAre(Pair("grpc-status", "0")));
  EXPECT_THAT(
      EndFields({absl::NotFoundError("no %"), std::string("\x00\xFF", 2), {{"a", "b"}, {"c-bin", "\xFF"}}}),
      ElementsAre(Pair("grpc-status", "5"), Pair("grpc-message", "no %25"),
                  Pair("grpc-status-details-bin", "AP8"), Pair("a", "b"), Pair("c-bin", "/w")));
}

}  // namespace
}  // namespace saccade::server
