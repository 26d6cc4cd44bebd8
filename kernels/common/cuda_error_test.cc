#include "kernels/common/cuda_error.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace saccade::kernels {
namespace {

using ::testing::HasSubstr;

TEST(CheckLaunchTest, AnErrorOfCudaKeepsItsCode) {
  // Fails with a GPU (no such device) and without one (no driver).
  ASSERT_NE(cudaSetDevice(-1), cudaSuccess);
  const cudaError_t code = cudaPeekAtLastError();
  ASSERT_NE(code, cudaSuccess);
  try {
    CheckLaunch("sao", cudaGetErrorString(code));
    FAIL();
  } catch (const c10::AcceleratorError& error) {
    EXPECT_EQ(error.get_error_code(), static_cast<int>(code));
    // Programs rethrow errors with only their text.
    EXPECT_THAT(error.what(), HasSubstr("sao: CUDA error: "));
    EXPECT_THAT(error.what(), HasSubstr(cudaGetErrorString(code)));
  }
}

TEST(CheckLaunchTest, NoErrorIsNone) { EXPECT_NO_THROW(CheckLaunch("sao", nullptr)); }

}  // namespace
}  // namespace saccade::kernels
