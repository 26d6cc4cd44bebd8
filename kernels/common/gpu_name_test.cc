#include "kernels/common/gpu_name.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

namespace saccade::kernels {
namespace {

TEST(GpuNameTest, NameAndComputeCapability) {
  void* const driver = dlopen(SACCADE_FAKE_DRIVER, RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(driver, nullptr) << dlerror();
  EXPECT_EQ(GpuName(driver, 0), "NVIDIA H200 sm_90");
  EXPECT_EQ(GpuName(driver, 1), "") << "there is no such GPU";
  dlclose(driver);
}

TEST(GpuNameTest, ALibraryThatIsNoDriverSaysNothing) {
  void* const other = dlopen("libm.so.6", RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(other, nullptr);
  EXPECT_EQ(GpuName(other, 0), "");
  dlclose(other);
}

}  // namespace
}  // namespace saccade::kernels
