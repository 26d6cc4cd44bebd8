#include "server/net/output.h"

#include <algorithm>
#include <array>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace saccade::server {
namespace {

// The first `size` bytes that wait, as Peek() shows them.
std::string FirstOf(const Output& output, size_t size, size_t max_pieces = 64) {
  std::vector<iovec> pieces(max_pieces);
  const size_t count = output.Peek(absl::MakeSpan(pieces));
  std::string bytes;
  for (size_t i = 0; i < count; ++i) {
    EXPECT_GT(pieces[i].iov_len, 0U);
    bytes.append(static_cast<const char*>(pieces[i].iov_base), pieces[i].iov_len);
  }
  return bytes.substr(0, size);
}

BytePieces Owned(std::string text, std::shared_ptr<std::string>* owner = nullptr) {
  auto kept = std::make_shared<std::string>(std::move(text));
  if (owner != nullptr) *owner = kept;
  const std::string_view whole = *kept;
  return BytePieces(whole, std::move(kept));
}

TEST(OutputTest, SmallPiecesAreCopiedTogetherAndLargeOnesAreReferredTo) {
  Output output;
  std::shared_ptr<std::string> small, large;
  output.Copy("head ");
  output.Add(Owned("small ", &small));
  EXPECT_EQ(small.use_count(), 1) << "a copied piece's owner is released at once";
  output.Add(Owned(std::string(10'000, 'x'), &large));
  EXPECT_EQ(large.use_count(), 2);
  output.Copy(" end");
  std::array<iovec, 8> pieces;
  ASSERT_EQ(output.Peek(absl::MakeSpan(pieces)), 3U);
  EXPECT_EQ(pieces[1].iov_base, large->data());
  EXPECT_EQ(output.size(), 11U + 10'000U + 4U);
  output.Consume(11 + 9'999);
  EXPECT_EQ(large.use_count(), 2);
  output.Consume(1);
  EXPECT_EQ(large.use_count(), 1) << "released with its last byte";
  EXPECT_EQ(FirstOf(output, 100), " end");
}

TEST(OutputTest, AnOwnerOfSeveralPiecesIsReleasedWithTheLast) {
  auto owner = std::make_shared<std::string>(20'000, 'x');
  BytePieces pieces({owner->data(), 5'000}, owner);
  pieces.Add({owner->data() + 6'000, 5'000});
  Output output;
  output.Add(std::move(pieces));
  output.Consume(5'000);
  EXPECT_EQ(owner.use_count(), 2);
  output.Consume(5'000);
  EXPECT_EQ(owner.use_count(), 1);
  EXPECT_TRUE(output.empty());
}

TEST(OutputTest, ActionsRunInTheirOrderWhenTheirBytesAreWritten) {
  Output output;
  std::string ran;
  output.OnWritten([&] { ran += '0'; });
  EXPECT_EQ(ran, "0") << "nothing waits";
  output.Copy("abc");
  output.OnWritten([&] {
    ran += '1';
    output.Copy("de");
    output.OnWritten([&] { ran += '3'; });
  });
  output.OnWritten([&] { ran += '2'; });
  output.Consume(2);
  EXPECT_EQ(ran, "0");
  output.Consume(1);
  EXPECT_EQ(ran, "012");
  EXPECT_EQ(FirstOf(output, 100), "de");
  output.Consume(2);
  EXPECT_EQ(ran, "0123");
}

TEST(OutputTest, WhatIsClearedReleasesItsOwnersAndRunsNoAction) {
  Output output;
  std::shared_ptr<std::string> large;
  const auto captured = std::make_shared<int>(1);
  output.Add(Owned(std::string(10'000, 'x'), &large));
  output.OnWritten([captured] { FAIL(); });
  output.Clear();
  EXPECT_TRUE(output.empty());
  EXPECT_EQ(large.use_count(), 1);
  EXPECT_EQ(captured.use_count(), 1);
  output.Copy("abc");
  EXPECT_EQ(FirstOf(output, 100), "abc");
}

// Any order of operations shows the bytes of a plain string and runs each action after exactly its bytes.
TEST(OutputTest, BehavesAsAString) {
  for (unsigned seed = 0; seed < 50; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const auto below = [&random](size_t bound) { return static_cast<size_t>(random() % bound); };
    Output output;
    std::string expected;
    std::vector<std::shared_ptr<std::string>> owners;
    size_t appended = 0, consumed = 0, marks = 0, ran = 0;
    for (int step = 0; step < 400; ++step) {
      const std::string bytes(below(4) == 0 ? below(20'000) : below(300), static_cast<char>('a' + below(26)));
      switch (below(4)) {
        case 0:
          output.Copy(bytes);
          expected += bytes;
          appended += bytes.size();
          break;
        case 1:
          output.Add(Owned(bytes, &owners.emplace_back()));
          expected += bytes;
          appended += bytes.size();
          break;
        case 2:
          ++marks;
          output.OnWritten([&, at = appended] {
            EXPECT_LE(at, consumed);
            ++ran;
          });
          break;
        default:
          const size_t size = std::min(below(30'000), expected.size());
          consumed += size;
          output.Consume(size);
          expected.erase(0, size);
      }
      ASSERT_EQ(output.size(), expected.size());
      const std::string first = FirstOf(output, expected.size(), 1 + below(70));
      ASSERT_EQ(first, expected.substr(0, first.size()));
      ASSERT_EQ(first.empty(), expected.empty());
    }
    consumed += output.size();
    output.Consume(output.size());
    EXPECT_EQ(ran, marks);
    for (const auto& owner : owners) EXPECT_EQ(owner.use_count(), 1);
  }
}

}  // namespace
}  // namespace saccade::server
