// A fake of CUDA's driver library with one GPU.
#include <cstring>

extern "C" {

int cuDeviceGet(int* device, int gpu) {
  *device = 40 + gpu;
  return gpu == 0 ? 0 : 101;
}

int cuDeviceGetName(char* name, int length, int device) {
  if (device != 40) return 101;
  std::strncpy(name, "NVIDIA H200", static_cast<std::size_t>(length));
  return 0;
}

int cuDeviceGetAttribute(int* value, int attribute, int device) {
  if (device != 40) return 101;
  *value = attribute == 75 ? 9 : 0;
  return attribute == 75 || attribute == 76 ? 0 : 1;
}

}  // extern "C"
