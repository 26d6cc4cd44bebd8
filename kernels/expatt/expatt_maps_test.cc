#include "kernels/expatt/expatt_maps.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

namespace saccade::kernels {
namespace {

constexpr int64_t kMega = int64_t{1} << 20;

// What happened to the map of one key.
struct Told {
  int made = 0;
  int freed = 0;
  int uses = 0;
  bool filled = true;
  std::vector<ExpattMapPins> recordings;
};

class FakeMemory : public ExpattStoredMemory {
 public:
  explicit FakeMemory(Told* told) : told_(told) { ++told_->made; }
  ~FakeMemory() override { ++told_->freed; }
  const void* data() const override { return told_; }
  void UseOnCurrentStream() override { ++told_->uses; }
  bool UseInRecording(const ExpattMapPins& pins) override {
    if (!told_->filled) return false;
    ++*pins;
    told_->recordings.push_back(pins);
    return true;
  }

 private:
  Told* told_;
};

class ExpattMapsTest : public testing::Test {
 protected:
  static ExpattMapKey Key(int64_t width) {
    return {.kind = ExpattKind::kLinear, .height = 8, .width = width, .dtype = Dtype::kBFloat16};
  }
  std::shared_ptr<ExpattStoredMemory> Find(Told* told, const ExpattMapKey& key, int64_t bytes = kMega,
                                           bool recording = false) {
    return maps_.Find(key, bytes, recording, [&] { return std::make_shared<FakeMemory>(told); });
  }
  // Stores a map, which takes two calls.
  void Store(Told* told, const ExpattMapKey& key, int64_t bytes = kMega) {
    Find(told, key, bytes);
    ASSERT_NE(Find(told, key, bytes), nullptr);
    ASSERT_EQ(told->made, 1);
  }
  void Idle() {
    Told& other = NewTold();
    for (int64_t i = 0; i < ExpattMaps::kMinIdleCalls; ++i) Find(&other, Key(1000 + i % 2), kMega, true);
  }

  Told& NewTold() { return told_.emplace_back(); }

  std::deque<Told> told_;  // outlives the maps
  ExpattMaps maps_;
};

TEST_F(ExpattMapsTest, MakesAMapAtTheSecondCallAndKeepsIt) {
  Told& told = NewTold();
  EXPECT_EQ(Find(&told, Key(3)), nullptr);
  EXPECT_EQ(told.made, 0);
  EXPECT_NE(Find(&told, Key(3)), nullptr);
  EXPECT_EQ(told.uses, 0);
  const auto again = Find(&told, Key(3));
  ASSERT_NE(again, nullptr);
  EXPECT_EQ(again->data(), &told);
  EXPECT_EQ(told.made, 1);
  EXPECT_EQ(told.uses, 1);
  EXPECT_EQ(maps_.BytesOn(0), kMega);
}

TEST_F(ExpattMapsTest, EveryPartOfTheKeyCounts) {
  const ExpattMapKey key = {.device = 0,
                            .kind = ExpattKind::kExponentialEuclidean,
                            .height = 4,
                            .width = 6,
                            .sigma = 0.5f,
                            .dtype = Dtype::kBFloat16};
  Told& told = NewTold();
  Store(&told, key);
  const auto differs = [&](auto change) {
    ExpattMapKey other = key;
    change(other);
    Told& unused = NewTold();
    return Find(&unused, other) == nullptr;
  };
  EXPECT_TRUE(differs([](auto& k) { k.device = 1; }));
  EXPECT_TRUE(differs([](auto& k) { k.kind = ExpattKind::kGaussian; }));
  EXPECT_TRUE(differs([](auto& k) { std::swap(k.height, k.width); }));
  EXPECT_TRUE(differs([](auto& k) { k.sigma = 0.25f; }));
  EXPECT_TRUE(differs([](auto& k) { k.dtype = Dtype::kFloat16; }));
  EXPECT_FALSE(differs([](auto&) {}));
}

TEST_F(ExpattMapsTest, DropsTheLeastRecentlyUsedThatAreIdle) {
  Told& first = NewTold();
  Told& second = NewTold();
  Told& third = NewTold();
  constexpr int64_t kHalf = ExpattMaps::kMaxBytes / 2;
  Store(&first, Key(1), kHalf);
  Store(&second, Key(2), kHalf);
  // Both are in use.
  Find(&third, Key(3), kHalf);
  EXPECT_EQ(Find(&third, Key(3), kHalf), nullptr);
  EXPECT_EQ(third.made + first.freed + second.freed, 0);
  Find(&first, Key(1), kHalf);
  Idle();
  EXPECT_NE(Find(&third, Key(3), kHalf), nullptr);
  EXPECT_EQ(second.freed, 1);
  EXPECT_EQ(first.freed, 0);
  EXPECT_EQ(maps_.BytesOn(0), ExpattMaps::kMaxBytes);
}

TEST_F(ExpattMapsTest, TheBoundIsOneForEachDevice) {
  Told& first = NewTold();
  Told& second = NewTold();
  Store(&first, Key(1), ExpattMaps::kMaxBytes);
  ExpattMapKey elsewhere = Key(1);
  elsewhere.device = 1;
  Store(&second, elsewhere, ExpattMaps::kMaxBytes);
  EXPECT_EQ(first.freed, 0);
  Told& larger = NewTold();
  Idle();
  Find(&larger, Key(5), ExpattMaps::kMaxBytes + 1);
  EXPECT_EQ(Find(&larger, Key(5), ExpattMaps::kMaxBytes + 1), nullptr);
  EXPECT_EQ(larger.made, 0);
}

TEST_F(ExpattMapsTest, AMapOfARecordingOutlivesIt) {
  Told& recorded = NewTold();
  Told& other = NewTold();
  Store(&recorded, Key(1), ExpattMaps::kMaxBytes);
  EXPECT_NE(Find(&recorded, Key(1), ExpattMaps::kMaxBytes, true), nullptr);
  EXPECT_NE(Find(&recorded, Key(1), ExpattMaps::kMaxBytes, true), nullptr);
  ASSERT_EQ(recorded.recordings.size(), 2U);
  Idle();
  Find(&other, Key(2));
  EXPECT_EQ(Find(&other, Key(2)), nullptr);
  // One of the recordings is freed.
  --*recorded.recordings[0];
  EXPECT_EQ(Find(&other, Key(2)), nullptr);
  EXPECT_EQ(recorded.freed, 0);
  --*recorded.recordings[1];
  EXPECT_NE(Find(&other, Key(2)), nullptr);
  EXPECT_EQ(recorded.freed, 1);
}

TEST_F(ExpattMapsTest, ARecordingNeitherMakesAMapNorWaitsForOne) {
  Told& told = NewTold();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(Find(&told, Key(1), kMega, true), nullptr);
  EXPECT_EQ(told.made, 0);
  Store(&told, Key(1));
  told.filled = false;
  EXPECT_EQ(Find(&told, Key(1), kMega, true), nullptr);
  told.filled = true;
  EXPECT_NE(Find(&told, Key(1), kMega, true), nullptr);
}

TEST_F(ExpattMapsTest, DoesWithoutAMapThatCannotBeMade) {
  const auto fails = [&] {
    return maps_.Find(Key(1), kMega, false, [] { return std::shared_ptr<ExpattStoredMemory>(); });
  };
  EXPECT_EQ(fails(), nullptr);
  EXPECT_EQ(fails(), nullptr);
  EXPECT_EQ(maps_.BytesOn(0), 0);
  Told& told = NewTold();
  EXPECT_NE(Find(&told, Key(1)), nullptr);
}

// A caller that has found a map keeps it, though it is dropped meanwhile.
TEST_F(ExpattMapsTest, ADroppedMapLivesWhileACallUsesIt) {
  Told& told = NewTold();
  Told& other = NewTold();
  Store(&told, Key(1), ExpattMaps::kMaxBytes);
  auto held = Find(&told, Key(1), ExpattMaps::kMaxBytes);
  Idle();
  Store(&other, Key(2));
  EXPECT_EQ(told.freed, 0);
  held.reset();
  EXPECT_EQ(told.freed, 1);
}

}  // namespace
}  // namespace saccade::kernels
