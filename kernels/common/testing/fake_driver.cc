// A fake of CUDA's driver library. The environment says what it answers:
//   SACCADE_FAKE_GPUS    the number of GPUs, 1 if it is not set
//   SACCADE_FAKE_CUINIT  the code that cuInit returns
//   SACCADE_FAKE_COUNT   the code that cuDeviceGetCount returns
#include <cstdlib>
#include <cstring>

namespace {

constexpr int kInvalidDevice = 101;
constexpr int kFirstDevice = 40;

int Number(const char* variable, int otherwise) {
  const char* const value = std::getenv(variable);
  return value == nullptr ? otherwise : std::atoi(value);
}

int Gpus() { return Number("SACCADE_FAKE_GPUS", 1); }

bool IsDevice(int device) { return device >= kFirstDevice && device < kFirstDevice + Gpus(); }

}  // namespace

extern "C" {

int cuInit(unsigned /*flags*/) { return Number("SACCADE_FAKE_CUINIT", 0); }

int cuDeviceGetCount(int* count) {
  *count = Gpus();
  return Number("SACCADE_FAKE_COUNT", 0);
}

int cuDeviceGet(int* device, int gpu) {
  *device = kFirstDevice + gpu;
  return IsDevice(*device) ? 0 : kInvalidDevice;
}

int cuDeviceGetName(char* name, int length, int device) {
  if (!IsDevice(device)) return kInvalidDevice;
  std::strncpy(name, device == kFirstDevice ? "NVIDIA H200" : "NVIDIA L4", static_cast<std::size_t>(length));
  return 0;
}

int cuDeviceGetAttribute(int* value, int attribute, int device) {
  if (!IsDevice(device)) return kInvalidDevice;
  const bool first = device == kFirstDevice;
  if (attribute == 75) {
    *value = first ? 9 : 8;
  } else if (attribute == 76) {
    *value = first ? 0 : 9;
  } else {
    return 1;
  }
  return 0;
}

int cuDeviceGetUuid_v2(unsigned char* uuid, int device) {
  if (!IsDevice(device)) return kInvalidDevice;
  for (int i = 0; i < 14; ++i) uuid[i] = static_cast<unsigned char>(i);
  uuid[14] = static_cast<unsigned char>(0xf0 + device - kFirstDevice);
  uuid[15] = 0xff;
  return 0;
}

}  // extern "C"
