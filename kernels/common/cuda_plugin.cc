#include "kernels/common/cuda_plugin.h"

#include <c10/util/Exception.h>
#include <dlfcn.h>

#include <filesystem>
#include <string>

#include "kernels/common/cuda_graph.h"
#include "kernels/common/cuda_ipc.h"
#include "kernels/common/gpu_name.h"

namespace saccade::kernels {
namespace {

std::string LastError() {
  const char* error = dlerror();
  return error == nullptr ? "no reason given" : error;
}

// Uses the driver API: CUDA's runtime would have to be linked, and not every machine has it.
// Names the devices too.
int CountDevices(CudaPlugin* plugin) {
  std::string* const reason = &plugin->reason;
  void* driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (driver == nullptr) {
    *reason = "no CUDA driver: " + LastError();
    return 0;
  }
  const auto init = reinterpret_cast<int (*)(unsigned)>(dlsym(driver, "cuInit"));
  const auto count = reinterpret_cast<int (*)(int*)>(dlsym(driver, "cuDeviceGetCount"));
  int devices = 0;
  if (init == nullptr || count == nullptr) {
    *reason = "libcuda.so.1 lacks cuInit or cuDeviceGetCount; expected NVIDIA's driver library";
  } else if (const int error = init(0); error != 0) {
    *reason = "the CUDA driver cannot be initialized (cuInit returned " + std::to_string(error) + ")";
  } else if (const int failed = count(&devices); failed != 0 || devices == 0) {
    *reason = "the CUDA driver found no GPU";
    devices = 0;
  }
  for (int gpu = 0; gpu < devices; ++gpu) {
    plugin->names.push_back(GpuName(driver, gpu));
    plugin->uuids.push_back(GpuUuid(driver, gpu));
  }
  return devices;
}

std::filesystem::path OwnFolder() {
  Dl_info info;
  if (dladdr(reinterpret_cast<void*>(&LoadCudaPlugin), &info) == 0) return {};
  return std::filesystem::path(info.dli_fname).parent_path();
}

// Handle of the plugin. Written once, before LoadCudaPlugin() returns for the first time.
void* opened = nullptr;

CudaPlugin Load() {
  CudaPlugin plugin;
  const int devices = CountDevices(&plugin);
  if (devices == 0) return plugin;
  // Opened by name instead of linked, because it pulls in gigabytes of CUDA libraries.
  if (dlopen("libtorch_cuda.so", RTLD_NOW | RTLD_GLOBAL) == nullptr) {
    plugin.reason = "a GPU was found, but LibTorch's CUDA libraries cannot be loaded: " + LastError() +
                    ". Install the full set of CUDA wheels (./dev build --cuda).";
    return plugin;
  }
  const std::string own = OwnFolder() / "libsaccade_cuda.so";
  opened = dlopen(own.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (opened == nullptr) {
    plugin.reason = "a GPU was found, but libsaccade_cuda.so cannot be loaded: " + LastError() +
                    ". Build it on a machine with nvcc.";
    return plugin;
  }
  plugin.loaded = true;
  plugin.devices = devices;
  return plugin;
}

}  // namespace

const CudaPlugin& LoadCudaPlugin() {
  static const CudaPlugin plugin = Load();
  return plugin;
}

void* CudaPluginSymbol(const char* name) { return LoadCudaPlugin().loaded ? dlsym(opened, name) : nullptr; }

const CudaIpc* LoadCudaIpc() {
  const auto find = reinterpret_cast<const CudaIpc* (*)()>(CudaPluginSymbol("saccade_cuda_ipc"));
  return find == nullptr ? nullptr : find();
}

std::unique_ptr<CudaGraph> MakeCudaGraph(int gpu, CudaGraph* beside) {
  const auto make =
      reinterpret_cast<CudaGraph* (*)(int, CudaGraph*)>(CudaPluginSymbol("saccade_make_cuda_graph"));
  TORCH_CHECK(make != nullptr, "CUDA graphs are not available: ", LoadCudaPlugin().reason);
  return std::unique_ptr<CudaGraph>(make(gpu, beside));
}

}  // namespace saccade::kernels
