#include "models/device/pinned.h"

#include <ATen/ops/empty.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "models/device/transfer.h"
#include "models/testing/fake_host_allocator.h"

namespace saccade::models {
namespace {

const std::vector<int64_t> kShape = {2, 3, 4};

TEST(PinnedTest, TensorsAreInMemoryOfTheGpusAllocator) {
  testing::FakeHostAllocator allocator;
  const at::Tensor x = EmptyPinned(kShape, at::kFloat);
  EXPECT_EQ(allocator.allocated, 1);
  EXPECT_EQ(x.sizes().vec(), kShape);
  EXPECT_EQ(x.scalar_type(), at::kFloat);
  EXPECT_TRUE(x.is_contiguous());
  EXPECT_EQ(x.storage().nbytes(), 2U * 3 * 4 * sizeof(float));
  x.fill_(7);
  EXPECT_EQ(x.sum().item<float>(), 7 * 24);
  EXPECT_TRUE(IsPinned(x));
  EXPECT_TRUE(IsPinned(x.transpose(0, 1))) << "a clip";
  EXPECT_FALSE(IsPinned(at::empty(kShape, at::kFloat)));
}

TEST(PinnedTest, WithoutAGpuOrWithoutSuchMemoryTensorsAreInOrdinaryMemory) {
  const at::Tensor without = EmptyPinned(kShape, at::kFloat);
  EXPECT_EQ(without.sizes().vec(), kShape);
  EXPECT_FALSE(IsPinned(without));
  testing::FakeHostAllocator allocator;
  allocator.fails = true;
  const at::Tensor refused = EmptyPinned(kShape, at::kHalf);
  EXPECT_EQ(refused.sizes().vec(), kShape);
  EXPECT_EQ(refused.scalar_type(), at::kHalf);
  EXPECT_FALSE(IsPinned(refused));
}

TEST(PinnedTest, SmallTensorsAreCopiedThere) {
  testing::FakeHostAllocator allocator;
  const at::Tensor sizes = at::empty({2, 2}, at::kLong).fill_(7);
  const at::Tensor copy = InPinned(sizes);
  EXPECT_TRUE(IsPinned(copy));
  EXPECT_TRUE(copy.equal(sizes));
  EXPECT_TRUE(SmallSent(sizes, at::kCPU).is_same(sizes));
  // A copy to the CPU would end the recording of a pass.
  const at::Tensor there = at::empty({2, 2}, at::TensorOptions(at::kMeta));
  EXPECT_TRUE(SmallSent(there, at::kMeta).is_same(there));
  EXPECT_EQ(allocator.allocated, 1);
}

TEST(PinnedTest, PicturesAreSentFromIt) {
  testing::FakeHostAllocator allocator;
  const at::Tensor x = EmptyPinned({1, 3, 2, 2}, at::kFloat);
  x.fill_(0.5);
  const at::Tensor sent = Sent(x, {.precision = Precision::kBFloat16});
  EXPECT_EQ(sent.scalar_type(), at::kBFloat16);
  EXPECT_EQ(sent.sum().item<float>(), 6);
}

}  // namespace
}  // namespace saccade::models
