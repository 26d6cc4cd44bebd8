// Tests the operator on tensors, in C++; nms_opcheck_test.py compares it with torchvision.
#include "kernels/nms/nms.h"

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "kernels/common/testing/tensors.h"

namespace saccade::kernels {
namespace {

using testing::HasSubstr;

at::Tensor RandomBoxes(int64_t count) {
  const at::Tensor low = at::rand({count, 2}) * 100;
  return at::cat({low, low + at::rand({count, 2}) * 40}, 1);
}

TEST(NmsTest, KeepsTheBestOfEachHeap) {
  const at::Tensor boxes =
      at::tensor({0, 0, 10, 10, 1, 0, 10, 10, 30, 0, 40, 10, 30, 1, 40, 10, 60, 0, 70, 10}, at::kFloat)
          .view({5, 4});
  const at::Tensor scores = at::tensor({0.5f, 0.9f, 0.2f, 0.1f, 0.9f});
  EXPECT_TRUE(SameBits(nms(boxes, scores, 0.5), at::tensor({1, 4, 2}, at::kLong)));
  const at::Tensor labels = at::tensor({0, 7, 0, 7, 0}, at::kLong);
  EXPECT_TRUE(SameBits(batched_nms(boxes, scores, labels, 0.5), at::tensor({1, 4, 0, 2, 3}, at::kLong)));
  EXPECT_TRUE(SameBits(batched_nms(boxes, scores, labels, 0.5, 2), at::tensor({1, 4}, at::kLong)));
}

TEST(NmsTest, PaddedResultsAreTheSame) {
  const at::Tensor boxes = RandomBoxes(300);
  const at::Tensor scores = at::rand({300});
  const at::Tensor labels = at::randint(4, {300}, at::kLong);
  const at::Tensor expected = batched_nms(boxes, scores, labels, 0.4, 150);
  const auto [indices, count] = nms_padded(boxes, scores, 0.4, labels, 150);
  ASSERT_EQ(indices.sizes(), at::IntArrayRef({150}));
  ASSERT_EQ(count.item<int64_t>(), expected.size(0));
  EXPECT_TRUE(SameBits(indices.narrow(0, 0, expected.size(0)), expected));
  EXPECT_TRUE(indices.narrow(0, expected.size(0), 150 - expected.size(0)).eq(-1).all().item<bool>());
}

TEST(NmsTest, DoesNotDependOnTheThreads) {
  const at::Tensor boxes = RandomBoxes(6000) * 10;
  const at::Tensor scores = at::rand({6000});
  const int threads = at::get_num_threads();
  const at::Tensor expected = nms(boxes, scores, 0.5);
  for (const int count : {1, 2, 3, 7}) {
    at::set_num_threads(count);
    EXPECT_TRUE(SameBits(nms(boxes, scores, 0.5), expected)) << count << " threads";
  }
  at::set_num_threads(threads);
}

TEST(NmsTest, ErrorsNameTheArgumentWhatWasExpectedAndWhatCame) {
  const at::Tensor boxes = RandomBoxes(5);
  const at::Tensor scores = at::rand({5});
  EXPECT_THAT(ErrorOf([&] { nms(boxes, scores.narrow(0, 0, 4), 0.5); }),
              HasSubstr("nms: argument 'scores' should have shape [5], got [4]"));
  EXPECT_THAT(ErrorOf([&] { nms(boxes / 0, scores, 0.5); }),
              HasSubstr("nms: argument 'boxes' should be finite, got infinity or NaN"));
  EXPECT_THAT(ErrorOf([&] { batched_nms(boxes, scores, at::zeros({5}), 0.5); }),
              HasSubstr("nms: argument 'labels' should be int64, got float32"));
}

}  // namespace
}  // namespace saccade::kernels
