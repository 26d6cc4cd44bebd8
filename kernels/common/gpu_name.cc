#include "kernels/common/gpu_name.h"

#include <dlfcn.h>

#include <array>
#include <cstddef>

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

std::string GpuUuid(void* driver, int gpu) {
  const auto get = reinterpret_cast<int (*)(int*, int)>(dlsym(driver, "cuDeviceGet"));
  // Drivers without the second version do not know MIG's instances.
  void* symbol = dlsym(driver, "cuDeviceGetUuid_v2");
  if (symbol == nullptr) symbol = dlsym(driver, "cuDeviceGetUuid");
  const auto uuid_of = reinterpret_cast<int (*)(unsigned char*, int)>(symbol);
  int device = 0;
  std::array<unsigned char, 16> bytes{};
  if (get == nullptr || uuid_of == nullptr || get(&device, gpu) != 0 || uuid_of(bytes.data(), device) != 0)
    return "";
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += kDigits[bytes[i] >> 4];
    text += kDigits[bytes[i] & 15];
  }
  return text;
}

}  // namespace saccade::kernels
