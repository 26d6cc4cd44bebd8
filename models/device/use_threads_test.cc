#include "models/device/use_threads.h"

#include <ATen/Parallel.h>
#include <ATen/ops/ones.h>

#include <thread>

#include "gtest/gtest.h"
#include "kernels/common/parallel.h"

namespace saccade::models {
namespace {

TEST(UseThreads, WhatOthersAskForChangesNothing) {
  const int before = at::get_num_threads();
  std::thread([] {
    UseThreads(1);
    std::thread([] { UseThreads(2); }).join();
    // The first use of each in this thread.
    kernels::TorchParallel().run(8, 1, [](int64_t, int64_t, int) {});
    EXPECT_EQ(at::get_num_threads(), 1) << "after an operator of ours";
    at::parallel_for(0, 8, 1, [](int64_t, int64_t) {});
    EXPECT_EQ(at::get_num_threads(), 1) << "after a loop of this program";
    at::ones({64, 64}).mm(at::ones({64, 64}));
    EXPECT_EQ(at::get_num_threads(), 1) << "after LibTorch's own";
    EXPECT_EQ(kernels::TorchParallel().threads, 1);
  }).join();
  at::set_num_threads(before);
}

}  // namespace
}  // namespace saccade::models
