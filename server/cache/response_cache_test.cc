#include "server/cache/response_cache.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace saccade::server {
namespace {

constexpr int64_t kAnswer = 4096;
// A bound that holds three answers but not four.
constexpr int64_t kThree = 4 * kAnswer;

CacheKey Key(int number) {
  CacheKey key{};
  std::memcpy(key.data(), &number, sizeof(number));
  return key;
}

// An answer whose tensor is a part of a larger buffer filled with `value`.
TensorAnswer Answer(char value, int64_t size = kAnswer) {
  auto whole = std::make_shared<const std::string>(size * 2, value);
  TensorAnswer answer{.model = "m", .version = 3, .outputs = {}};
  answer.outputs.push_back({.name = "out", .type = DataType::kUint8, .shape = {size}, .data = {}});
  answer.outputs[0].data = BytePieces(std::string_view(*whole).substr(0, size), whole);
  return answer;
}

std::string TextOf(const TensorAnswer& answer) {
  std::string text(answer.outputs.at(0).data.size(), ' ');
  answer.outputs[0].data.CopyTo(text.data());
  return text;
}

class ResponseCacheTest : public ::testing::Test {
 protected:
  ResponseCache cache_{kThree};
  std::unique_ptr<CachedAnswers> model_ = cache_.ForModel(0);
};

TEST_F(ResponseCacheTest, GivesBackWhatWasKept) {
  EXPECT_FALSE(model_->Find(Key(1)).has_value());
  model_->Keep(Key(1), Answer('a'));
  const auto found = model_->Find(Key(1));
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->model, "m");
  EXPECT_EQ(found->version, 3);
  EXPECT_EQ(found->outputs[0].name, "out");
  EXPECT_EQ(found->outputs[0].type, DataType::kUint8);
  EXPECT_EQ(found->outputs[0].shape, std::vector<int64_t>{kAnswer});
  EXPECT_EQ(TextOf(*found), std::string(kAnswer, 'a'));
  EXPECT_FALSE(model_->Find(Key(2)).has_value());
}

TEST_F(ResponseCacheTest, HoldsOnToNothingButItsCopy) {
  TensorAnswer answer = Answer('a');
  const auto owner = std::make_shared<const std::string>(1000, 'b');
  const std::weak_ptr<const std::string> watched = owner;
  answer.outputs[0].data = BytePieces(*owner, owner);
  answer.outputs[0].shape = {1000};
  model_->Keep(Key(1), answer);
  EXPECT_EQ(owner.use_count(), 2) << "ours and the answer's";
  EXPECT_GE(cache_.bytes(), 1000);
}

TEST_F(ResponseCacheTest, AnAnswerWithMoreOutputsReplacesOneWithFewer) {
  model_->Keep(Key(1), Answer('a'));
  TensorAnswer both = Answer('b');
  both.outputs.push_back(both.outputs[0]);
  model_->Keep(Key(1), both);
  EXPECT_EQ(model_->Find(Key(1))->outputs.size(), 2u);
  EXPECT_EQ(cache_.answers(), 1);
  model_->Keep(Key(1), Answer('c'));
  EXPECT_EQ(TextOf(*model_->Find(Key(1))), std::string(kAnswer, 'b'));
  model_->Close();
  EXPECT_EQ(cache_.bytes(), 0) << "the replaced one no longer counts";
}

TEST_F(ResponseCacheTest, AHitIsNotCopied) {
  model_->Keep(Key(1), Answer('a'));
  const auto first = model_->Find(Key(1));
  const auto second = model_->Find(Key(1));
  EXPECT_EQ(first->outputs[0].data.pieces()[0].data(), second->outputs[0].data.pieces()[0].data());
}

TEST_F(ResponseCacheTest, WhatWasNotAskedForGoesFirst) {
  for (int i = 1; i <= 3; ++i) model_->Keep(Key(i), Answer('a'));
  EXPECT_EQ(cache_.answers(), 3);
  EXPECT_TRUE(model_->Find(Key(1)).has_value());
  model_->Keep(Key(4), Answer('d'));
  EXPECT_EQ(cache_.answers(), 3);
  EXPECT_LE(cache_.bytes(), kThree);
  EXPECT_FALSE(model_->Find(Key(2)).has_value());
  for (const int i : {1, 3, 4}) EXPECT_TRUE(model_->Find(Key(i)).has_value()) << i;
}

TEST_F(ResponseCacheTest, OneLargeAnswerTakesThePlaceOfSeveral) {
  for (int i = 1; i <= 3; ++i) model_->Keep(Key(i), Answer('a'));
  model_->Keep(Key(4), Answer('b', 2 * kAnswer));
  EXPECT_FALSE(model_->Find(Key(1)).has_value());
  EXPECT_FALSE(model_->Find(Key(2)).has_value());
  EXPECT_TRUE(model_->Find(Key(3)).has_value());
  EXPECT_EQ(TextOf(*model_->Find(Key(4))), std::string(2 * kAnswer, 'b'));
}

TEST_F(ResponseCacheTest, WhatIsTooLargePushesNothingOut) {
  model_->Keep(Key(1), Answer('a'));
  model_->Keep(Key(2), Answer('b', kThree));
  EXPECT_TRUE(model_->Find(Key(1)).has_value());
  EXPECT_FALSE(model_->Find(Key(2)).has_value());
}

TEST_F(ResponseCacheTest, SmallAnswersCountWithWhatItTakesToFindThem) {
  for (int i = 0; i < 1000; ++i) model_->Keep(Key(i), Answer('a', 1));
  EXPECT_LE(cache_.bytes(), kThree);
  EXPECT_LT(cache_.answers(), kThree / 512);
}

TEST_F(ResponseCacheTest, AnAnswerOutlivesItsEntry) {
  model_->Keep(Key(1), Answer('a'));
  const auto found = model_->Find(Key(1));
  model_.reset();
  EXPECT_EQ(cache_.bytes(), 0);
  EXPECT_EQ(TextOf(*found), std::string(kAnswer, 'a'));
}

TEST_F(ResponseCacheTest, AVersionThatIsUnloadedKeepsNothing) {
  const auto other = cache_.ForModel(0);
  model_->Keep(Key(1), Answer('a'));
  other->Keep(Key(1), Answer('b'));
  model_->Close();
  model_->Keep(Key(2), Answer('a'));
  EXPECT_FALSE(model_->Find(Key(1)).has_value());
  EXPECT_FALSE(model_->Find(Key(2)).has_value());
  EXPECT_EQ(TextOf(*other->Find(Key(1))), std::string(kAnswer, 'b')) << "equal requests of different models";
  EXPECT_EQ(cache_.answers(), 1);
}

TEST_F(ResponseCacheTest, AModelsOwnBoundLeavesTheOthersAlone) {
  const auto bounded = cache_.ForModel(kThree / 3);
  model_->Keep(Key(1), Answer('a'));
  bounded->Keep(Key(2), Answer('b'));
  bounded->Keep(Key(3), Answer('c'));
  EXPECT_TRUE(model_->Find(Key(1)).has_value());
  EXPECT_FALSE(bounded->Find(Key(2)).has_value());
  EXPECT_TRUE(bounded->Find(Key(3)).has_value());
}

TEST_F(ResponseCacheTest, AnotherModelsOldAnswersMakeRoom) {
  const auto other = cache_.ForModel(0);
  for (int i = 1; i <= 3; ++i) model_->Keep(Key(i), Answer('a'));
  other->Keep(Key(1), Answer('b'));
  EXPECT_FALSE(model_->Find(Key(1)).has_value());
  EXPECT_TRUE(other->Find(Key(1)).has_value());
}

// A cache with many small answers of one model, and one of another. Its hook counts what is dropped during
// each hold of the lock, while another thread finds the answer of the other model.
class LargeResponseCacheTest : public ::testing::Test {
 protected:
  // The network's threads wait as long as it takes to drop these.
  static constexpr int64_t kMaxDrops = 1000;

  void Make(int64_t max_bytes, int count) {
    cache_ = std::make_unique<ResponseCache>(max_bytes, [this] { LookAround(); });
    model_ = cache_->ForModel(0);
    other_ = cache_->ForModel(0);
    const TensorAnswer small = Answer('a', 1);
    for (int i = 0; i < count; ++i) model_->Keep(Key(i), small);
    other_->Keep(Key(1), Answer('b'));
    answers_ = cache_->answers();
  }

  void LookAround() {
    ++looks_;
    std::thread([this] {
      EXPECT_TRUE(other_->Find(Key(1)).has_value());
      const int64_t left = cache_->answers();
      EXPECT_LE(answers_ - left, kMaxDrops);
      answers_ = left;
    }).join();
  }

  int64_t answers_ = 0;
  int64_t looks_ = 0;
  std::unique_ptr<ResponseCache> cache_;
  std::unique_ptr<CachedAnswers> other_;
  std::unique_ptr<CachedAnswers> model_;
};

TEST_F(LargeResponseCacheTest, OthersAreAnsweredWhileAVersionIsUnloaded) {
  constexpr int kAnswers = 100000;
  Make(int64_t{1} << 30, kAnswers);
  EXPECT_EQ(answers_, kAnswers + 1);
  model_->Close();
  EXPECT_EQ(looks_, kAnswers / kMaxDrops - 1);
  EXPECT_LE(answers_, kMaxDrops + 1);
  EXPECT_EQ(cache_->answers(), 1);
}

TEST_F(LargeResponseCacheTest, OthersAreAnsweredWhileALargeAnswerTakesThePlaceOfMany) {
  constexpr int64_t kMebibyte = 1 << 20;
  Make(8 * kMebibyte, 10000);
  model_->Keep(Key(-1), Answer('c', 6 * kMebibyte));
  EXPECT_GT(looks_, 3);
  EXPECT_TRUE(model_->Find(Key(-1)).has_value());
  EXPECT_LE(cache_->bytes(), 8 * kMebibyte);
  EXPECT_GT(cache_->answers(), 1);
  answers_ = cache_->answers();
}

TEST_F(ResponseCacheTest, ManyThreadsAndModels) {
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([this, thread] {
      for (int round = 0; round < 20; ++round) {
        const auto own = cache_.ForModel(0);
        for (int i = 0; i < 20; ++i) {
          CachedAnswers& answers = i % 2 == 0 ? *own : *model_;
          const auto value = static_cast<char>('a' + i);
          answers.Keep(Key(i), Answer(value));
          if (const auto found = answers.Find(Key(i))) {
            EXPECT_EQ(TextOf(*found), std::string(kAnswer, value)) << thread;
          }
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(cache_.bytes(), kThree);
  model_->Close();
  EXPECT_EQ(cache_.bytes(), 0);
  EXPECT_EQ(cache_.answers(), 0);
}

}  // namespace
}  // namespace saccade::server
