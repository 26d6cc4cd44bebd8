// A fake NVML with two GPUs. Of the second it reports only the memory. If SACCADE_FAKE_MIG is set, MIG
// divides the first into as many instances as that says, at most two, with the numbers 0 and 2; their power
// is given as that of the GPU. SACCADE_WITHOUT_MIG leaves out the functions that older drivers do not have.
#include <cstdlib>
#include <cstring>

namespace {

constexpr int kInvalidArgument = 2;
constexpr int kNotSupported = 3;
constexpr int kNotFound = 6;

int first = 0;
int second = 0;
int instances[2] = {};

const char* Mig() { return std::getenv("SACCADE_FAKE_MIG"); }

// The number of an instance from 1 on, or 0 if `device` is a GPU.
int InstanceOf(const void* device) { return device == instances ? 1 : device == instances + 1 ? 2 : 0; }

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
  const int instance = InstanceOf(device);
  std::strncpy(uuid,
               instance == 1      ? "MIG-1"
               : instance == 2    ? "MIG-2"
               : device == &first ? "GPU-1"
                                  : "GPU-2",
               length);
  return 0;
}

int nvmlDeviceGetUtilizationRates(void* device, unsigned int* rates) {
  rates[0] = 75;
  rates[1] = 10;
  return device == &first && Mig() == nullptr ? 0 : kNotSupported;
}

int nvmlDeviceGetMemoryInfo(void* device, unsigned long long* info) {
  const int instance = InstanceOf(device);
  info[0] = instance == 1 ? 120 : instance == 2 ? 250 : 1000;
  info[2] = instance == 1 ? 48 : instance == 2 ? 10 : 400;
  info[1] = info[0] - info[2];
  return 0;
}

int nvmlDeviceGetPowerUsage(void* device, unsigned int* milliwatts) {
  *milliwatts = 250500;
  return device == &second ? kNotSupported : 0;
}

int nvmlDeviceGetEnforcedPowerLimit(void* device, unsigned int* milliwatts) {
  *milliwatts = 700000;
  return device == &second ? kNotSupported : 0;
}

int nvmlDeviceGetTotalEnergyConsumption(void* device, unsigned long long* millijoules) {
  *millijoules = 12345000;
  return device == &second ? kNotSupported : 0;
}

#ifndef SACCADE_WITHOUT_MIG
int nvmlDeviceGetMaxMigDeviceCount(void* device, unsigned int* count) {
  if (device != &first) return kNotSupported;
  *count = Mig() == nullptr ? 0 : 3;
  return 0;
}

int nvmlDeviceGetMigDeviceHandleByIndex(void* device, unsigned int index, void** instance) {
  if (device != &first || Mig() == nullptr) return kInvalidArgument;
  const int found = std::atoi(Mig());
  if (index % 2 != 0 || static_cast<int>(index / 2) >= found) return kNotFound;
  *instance = instances + index / 2;
  return 0;
}
#endif

}  // extern "C"
