#include "server/core/byte_pieces.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace saccade::server {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::string Joined(const BytePieces& bytes) {
  std::string text(bytes.size(), '\0');
  bytes.CopyTo(text.data());
  return text;
}

TEST(BytePieces, KeepsPiecesApartUnlessTheyLieTogether) {
  const std::string one = "one", three = "three";
  BytePieces bytes(std::string_view(one).substr(0, 1));
  bytes.Add(std::string_view(one).substr(1));
  bytes.Add("");
  bytes.Add(three);
  EXPECT_THAT(bytes.pieces(), ElementsAre("one", "three"));
  EXPECT_EQ(bytes.pieces()[0].data(), one.data());
  EXPECT_EQ(bytes.size(), 8u);
  EXPECT_EQ(Joined(bytes), "onethree");
}

TEST(BytePieces, KeepsItsOwnerAlive) {
  auto owner = std::make_shared<std::string>("bytes");
  const std::weak_ptr<std::string> alive = owner;
  {
    const std::string_view view = *owner;
    const BytePieces bytes(view, std::move(owner));
    EXPECT_FALSE(alive.expired());
  }
  EXPECT_TRUE(alive.expired());
}

TEST(BytePieces, AreFloatsToo) {
  const std::vector<float> floats = {1, 2};
  const BytePieces bytes = absl::MakeConstSpan(floats);
  ASSERT_EQ(bytes.size(), 8u);
  EXPECT_EQ(static_cast<const void*>(bytes.pieces()[0].data()), floats.data());
}

TEST(PieceReader, ReadsAcrossPieces) {
  BytePieces bytes;
  for (const char* piece : {"ab", "c", "defg", "h"}) bytes.Add(piece);
  PieceReader reader(bytes);
  EXPECT_EQ(reader.Next(1), "a");
  EXPECT_EQ(reader.Next(5), "b");
  char read[3];
  reader.Read(3, read);
  EXPECT_EQ(std::string(read, 3), "cde");
  BytePieces rest;
  EXPECT_TRUE(reader.Take(0, rest));
  EXPECT_TRUE(reader.Take(3, rest));
  EXPECT_EQ(Joined(rest), "fgh");
  EXPECT_TRUE(reader.done());
  EXPECT_EQ(reader.Next(1), "");
}

TEST(PieceReader, SaysWhenThereIsNotEnough) {
  BytePieces taken;
  const std::string_view text = "abc";
  PieceReader whole(absl::MakeConstSpan(&text, 1));
  EXPECT_FALSE(whole.Take(4, taken));
  EXPECT_EQ(Joined(taken), "abc");
  EXPECT_THAT(BytePieces().pieces(), IsEmpty());
  EXPECT_TRUE(PieceReader(absl::Span<const std::string_view>()).done());
}

}  // namespace
}  // namespace saccade::server
