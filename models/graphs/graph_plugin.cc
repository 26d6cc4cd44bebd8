#include "models/graphs/graph_plugin.h"

#include <dlfcn.h>

#include <filesystem>
#include <mutex>

#include "kernels/common/cuda_plugin.h"
#include "models/api/error.h"

namespace saccade::models {
namespace {

constexpr char kLibrary[] = "libsaccade_openvino.so";
constexpr char kAdvice[] =
    "; install the package saccade-openvino of the same version, or build with OpenVINO's wheel "
    "(./dev setup openvino)";

std::string LastError() {
  const char* error = dlerror();
  return error == nullptr ? "no reason given" : error;
}

const GraphApi* Open() {
  const std::string path = std::filesystem::path(GraphPluginFolder()) / kLibrary;
  void* const opened = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (opened == nullptr)
    throw LoadError("this model is a graph for OpenVINO, and the library that runs it cannot be opened: " +
                    LastError() + kAdvice);
  const auto get = reinterpret_cast<const GraphApi* (*)()>(dlsym(opened, kGraphApiSymbol));
  const GraphApi* const api = get == nullptr ? nullptr : get();
  if (api == nullptr || api->version != kGraphApiVersion) {
    const std::string version = api == nullptr ? "none" : std::to_string(api->version);
    throw LoadError(path + " is of another version of Saccade: its interface has version " + version +
                    ", expected " + std::to_string(kGraphApiVersion) + kAdvice);
  }
  return api;
}

}  // namespace

std::string GraphPluginFolder() {
  Dl_info info;
  // Part of libsaccade_kernels.so.
  if (dladdr(reinterpret_cast<void*>(&kernels::LoadCudaPlugin), &info) == 0 || info.dli_fname == nullptr)
    return ".";
  return std::filesystem::path(info.dli_fname).parent_path();
}

const GraphApi& TheGraphApi() {
  static std::mutex mutex;
  static const GraphApi* api = nullptr;
  const std::lock_guard<std::mutex> lock(mutex);
  if (api == nullptr) api = Open();
  return *api;
}

}  // namespace saccade::models
