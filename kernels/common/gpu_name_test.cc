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
  EXPECT_EQ(GpuUuid(driver, 0), "00010203-0405-0607-0809-0a0b0c0df0ff");
  EXPECT_EQ(GpuUuid(driver, 1), "");
  dlclose(driver);
}

TEST(GpuNameTest, ALibraryThatIsNoDriverSaysNothing) {
  void* const other = dlopen("libm.so.6", RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(other, nullptr);
  EXPECT_EQ(GpuName(other, 0), "");
  EXPECT_EQ(GpuUuid(other, 0), "");
  dlclose(other);
}

}  // namespace
}  // namespace saccade::kernels
