#include "server/batching/batch_target.h"

#include <random>
#include <vector>

#include "gtest/gtest.h"

namespace saccade::server {
namespace {

constexpr int64_t kMax = 8;

// Simulates a bucket with one request every `period`, each with the given patience.
class BatchTargetTest : public ::testing::Test {
 protected:
  void Come(Bucket& bucket, Nanos period, Nanos patience) {
    bucket.patience = patience;
    for (NanoTime time; time < now_; time += period) bucket.arrivals.Add(1, time, RateMemory(bucket));
  }

  // A pass over n items takes n * 10 ms, so batching gains nothing.
  static void TeachThatCompanyIsNoUse(Bucket& bucket) {
    bucket.latency.Learn(1, 10 * kMillisecond);
    bucket.latency.Learn(kMax, 80 * kMillisecond);
  }

  int64_t SetTargets(const std::vector<Bucket*>& buckets) {
    return server::SetTargets(buckets, /*level=*/0, /*share=*/1, /*instances=*/1, kMax, now_);
  }

  const NanoTime now_ = NanoTime() + 60 * kSecond;
  Bucket bucket_{0, kMax};
  Bucket other_{1, kMax};
};

TEST_F(BatchTargetTest, NobodyWaitsWhereNothingComes) {
  TeachThatCompanyIsNoUse(bucket_);
  bucket_.patience = kSecond;
  SetTargets({&bucket_});
  EXPECT_EQ(bucket_.targets[0].size, 1);
  EXPECT_FALSE(bucket_.targets[0].overloaded);
}

TEST_F(BatchTargetTest, ALoneRequestToASlowModelWaitsForNobody) {
  bucket_.latency.Learn(1, 5 * kSecond);
  bucket_.latency.Learn(kMax, 40 * kSecond);
  bucket_.patience = 60 * kSecond;
  bucket_.arrivals.Add(1, now_, RateMemory(bucket_));
  SetTargets({&bucket_});
  EXPECT_EQ(bucket_.targets[0].size, 1);
  EXPECT_FALSE(bucket_.targets[0].overloaded);
}

// One item every 2 s is more than single passes of 5 s carry.
TEST_F(BatchTargetTest, WhoComesFasterThanASlowModelComputesWaits) {
  bucket_.latency.Learn(1, 5 * kSecond);
  bucket_.latency.Learn(kMax, 12 * kSecond);
  Come(bucket_, 2 * kSecond, 60 * kSecond);
  SetTargets({&bucket_});
  EXPECT_GT(bucket_.targets[0].size, 1);
}

// 200 items per second arrive; at most 100 can be computed.
TEST_F(BatchTargetTest, UnderOverloadBatchesAreAsLargeAsGatherInTime) {
  TeachThatCompanyIsNoUse(bucket_);
  Come(bucket_, 5 * kMillisecond, 60 * kMillisecond);
  EXPECT_EQ(SetTargets({&bucket_}), 1);
  EXPECT_TRUE(bucket_.targets[0].overloaded);
  EXPECT_EQ(bucket_.targets[0].largest, 2)
      << "one that has just missed a batch waits for it, and then for its own";
  EXPECT_EQ(bucket_.targets[0].size, 3) << "three come in 15 ms, and take 33 more";
  bucket_.patience = kSecond;
  SetTargets({&bucket_});
  EXPECT_EQ(bucket_.targets[0].size, kMax);
}

TEST_F(BatchTargetTest, WhoHardlyEverComesIsNotActive) {
  for (Bucket* bucket : {&bucket_, &other_}) TeachThatCompanyIsNoUse(*bucket);
  Come(bucket_, 5 * kMillisecond, kSecond);
  EXPECT_EQ(SetTargets({&bucket_, &other_}), 1);
  EXPECT_FALSE(other_.targets[0].overloaded) << "nothing comes to it";
  EXPECT_EQ(other_.targets[0].size, 1);
  Come(other_, 10 * kMillisecond, kSecond);
  EXPECT_EQ(SetTargets({&bucket_, &other_}), 2);
}

// A pass takes 10 ms up to four items, and half a second for eight. Batches of four carry the load, although
// the average cost of one more item is far higher.
TEST_F(BatchTargetTest, BatchesThatAreSlowOnlyWhenLargeAreKeptSmall) {
  bucket_.latency.Learn(4, 10 * kMillisecond);
  bucket_.latency.Learn(kMax, 500 * kMillisecond);
  Come(bucket_, 20 * kMillisecond, 60 * kMillisecond);
  SetTargets({&bucket_});
  EXPECT_EQ(bucket_.targets[0].largest, 4);
  EXPECT_EQ(bucket_.targets[0].size, 4);
  EXPECT_FALSE(bucket_.targets[0].overloaded);
}

// Models with plateaus, where larger sizes are quicker, and with doubts.
TEST(GatheredInTimeTest, IsTheSizeThatTryingOneAfterTheOtherFinds) {
  std::mt19937_64 random(1);  // NOLINT(bugprone-random-generator-seed)
  const auto any = [&](int64_t min, int64_t max) {
    return std::uniform_int_distribution<int64_t>(min, max)(random);
  };
  for (int round = 0; round < 300; ++round) {
    const int64_t max = any(1, 200);
    LatencyModel model(max);
    for (int64_t pass = any(1, 30); pass > 0; --pass) {
      model.Learn(any(1, max), Nanos(static_cast<double>(any(1, 50))));
      if (any(0, 9) == 0) model.Doubt(Nanos(static_cast<double>(any(1, 50))));
    }
    const auto upper = [&](int64_t size) { return model.Upper(size); };
    const double rate = 1 / static_cast<double>(any(1, 20));
    const int64_t just = any(1, max);
    for (const Nanos patience :
         {Nanos(static_cast<double>(any(0, 4000))), upper(just) + Nanos(static_cast<double>(just) / rate)}) {
      int64_t size = 1;
      while (size < max && upper(size + 1) + Nanos(static_cast<double>(size + 1) / rate) <= patience) ++size;
      EXPECT_EQ(GatheredInTime(upper, rate, patience, max), size) << "in round " << round;
    }
  }
}

TEST(GatheredInTimeTest, TriesFewOfManySizes) {
  constexpr int64_t kMany = 65536;
  for (const int64_t fits : {int64_t{1}, int64_t{2}, int64_t{1000}, kMany}) {
    int64_t tried = 0;
    const auto upper = [&](int64_t size) {
      ++tried;
      return Nanos(size <= fits ? 1 : 1e9);
    };
    EXPECT_EQ(GatheredInTime(upper, /*rate=*/1, Nanos(1e6), kMany), fits);
    EXPECT_LE(tried, 16);
  }
}

}  // namespace
}  // namespace saccade::server
