// A fake NVML with two GPUs. Of the second it reports only the memory.
#include <cstring>

namespace {

constexpr int kNotSupported = 3;

int first = 0;
int second = 0;

}  // namespace

extern "C" {

int nvmlInit_v2() { return 0; }
int nvmlShutdown() { return 0; }

int nvmlDeviceGetCount_v2(unsigned int* count) {
  *count = 2;
  return 0;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned int index, void** device) {
  *device = index == 0 ? &first : &second;
  return 0;
}

int nvmlDeviceGetUUID(void* device, char* uuid, unsigned int length) {
  std::strncpy(uuid, device == &first ? "GPU-1" : "GPU-2", length);
  return 0;
}

int nvmlDeviceGetUtilizationRates(void* device, unsigned int* rates) {
  rates[0] = 75;
  rates[1] = 10;
  return device == &first ? 0 : kNotSupported;
}

int nvmlDeviceGetMemoryInfo(void* /*device*/, unsigned long long* info) {
  info[0] = 1000;
  info[1] = 600;
  info[2] = 400;
  return 0;
}

int nvmlDeviceGetPowerUsage(void* device, unsigned int* milliwatts) {
  *milliwatts = 250500;
  return device == &first ? 0 : kNotSupported;
}

int nvmlDeviceGetEnforcedPowerLimit(void* device, unsigned int* milliwatts) {
  *milliwatts = 700000;
  return device == &first ? 0 : kNotSupported;
}

int nvmlDeviceGetTotalEnergyConsumption(void* device, unsigned long long* millijoules) {
  *millijoules = 12345000;
  return device == &first ? 0 : kNotSupported;
}

}  // extern "C"
