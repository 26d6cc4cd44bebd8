#include "server/engine/pass_failure.h"

#include <c10/util/Exception.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <new>
#include <stdexcept>
#include <string>

#include "absl/strings/str_cat.h"
#include "server/engine/device_lost.h"

namespace saccade::server {
namespace {

using ::testing::HasSubstr;

c10::AcceleratorError OfDevice(int code, const std::string& text) {
  return c10::AcceleratorError({__func__, __FILE__, static_cast<uint32_t>(__LINE__)}, code, text);
}

TEST(PassFailureTest, ErrorsThatCudaCallsStickyLoseTheDevice) {
  // 226 is what GPUs with error containment report for memory and NVLink errors.
  for (const int code : {214, 220, 226, 700, 702, 709, 710, 714, 715, 716, 717, 718, 719, 721, 810, 911}) {
    const absl::Status status = PassFailure(OfDevice(code, "CUDA error: as it may be"));
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << code;
    EXPECT_TRUE(IsDeviceLost(status)) << code;
  }
}

TEST(PassFailureTest, AnErrorOfOurOwnKernelsLosesTheDevice) {
  const absl::Status status =
      PassFailure(OfDevice(700, "sao: CUDA error: an illegal memory access was encountered"));
  EXPECT_TRUE(IsDeviceLost(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("sao: CUDA error: an illegal memory access"));
}

TEST(PassFailureTest, AProgramsErrorIsKnownByItsText) {
  for (const char* text :
       {"an illegal memory access was encountered", "the launch timed out and was terminated",
        "hardware stack error", "an illegal instruction was encountered", "misaligned address",
        "operation not supported on global/shared address space", "invalid program counter",
        "unspecified launch failure", "device-side assert triggered", "uncorrectable ECC error encountered",
        "uncorrectable NVLink error detected during the execution",
        "Invalid access of peer GPU memory over nvlink or a hardware error",
        "an async error has occured in external entity outside of CUDA"}) {
    const absl::Status status = PassFailure(std::runtime_error(
        absl::StrCat("The following operation failed in the TorchScript interpreter.\nCUDA error: ", text)));
    EXPECT_TRUE(IsDeviceLost(status)) << text;
  }
}

TEST(PassFailureTest, OtherErrorsOfCudaAreTheRequests) {
  // 1 is an invalid value, 98 a missing kernel, 720 a cooperative launch that is too large.
  for (const int code : {1, 98, 720}) {
    const absl::Status status = PassFailure(OfDevice(code, "CUDA error: invalid argument"));
    EXPECT_EQ(status.code(), absl::StatusCode::kInternal) << code;
    EXPECT_FALSE(IsDeviceLost(status)) << code;
  }
  EXPECT_FALSE(IsDeviceLost(PassFailure(std::runtime_error("misaligned address"))));
}

TEST(PassFailureTest, MemoryThatDoesNotSufficeIsNotTheDevices) {
  const absl::Status status = PassFailure(OfDevice(2, "CUDA error: out of memory"));
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_FALSE(IsDeviceLost(status));
  EXPECT_EQ(PassFailure(std::bad_alloc()).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(PassFailure(std::runtime_error("CUDA out of memory. Tried to allocate 2.00 GiB")).code(),
            absl::StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace saccade::server
