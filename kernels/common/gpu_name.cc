#include "kernels/common/gpu_name.h"

#include <dlfcn.h>

#include <array>

namespace saccade::kernels {
namespace {

// CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR and _MINOR, which are part of the driver's ABI.
constexpr int kMajor = 75;
constexpr int kMinor = 76;

}  // namespace

std::string GpuName(void* driver, int gpu) {
  const auto get = reinterpret_cast<int (*)(int*, int)>(dlsym(driver, "cuDeviceGet"));
  const auto name_of = reinterpret_cast<int (*)(char*, int, int)>(dlsym(driver, "cuDeviceGetName"));
  const auto attribute = reinterpret_cast<int (*)(int*, int, int)>(dlsym(driver, "cuDeviceGetAttribute"));
  if (get == nullptr || name_of == nullptr || attribute == nullptr) return "";
  int device = 0;
  int major = 0;
  int minor = 0;
  std::array<char, 256> name{};
  if (get(&device, gpu) != 0 || name_of(name.data(), static_cast<int>(name.size()) - 1, device) != 0 ||
      attribute(&major, kMajor, device) != 0 || attribute(&minor, kMinor, device) != 0) {
    return "";
  }
  return std::string(name.data()) + " sm_" + std::to_string(major) + std::to_string(minor);
}

}  // namespace saccade::kernels
