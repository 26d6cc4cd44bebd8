// Prints what LoadCudaPlugin() finds, one fact a line, for cuda_plugin_load_test.py.
#include <c10/util/Exception.h>

#include <iostream>
#include <string>

#include "kernels/common/cuda_graph.h"
#include "kernels/common/cuda_ipc.h"
#include "kernels/common/cuda_plugin.h"

int main() {
  namespace kernels = saccade::kernels;
  const kernels::CudaPlugin& plugin = kernels::LoadCudaPlugin();
  std::cout << "loaded " << plugin.loaded << "\ndevices " << plugin.devices << "\nreason " << plugin.reason
            << "\n";
  for (const std::string& name : plugin.names) std::cout << "name " << name << "\n";
  std::cout << "symbol " << (kernels::CudaPluginSymbol("saccade_make_cuda_graph") != nullptr) << "\nunknown "
            << (kernels::CudaPluginSymbol("saccade_no_such_function") != nullptr) << "\nipc "
            << (kernels::LoadCudaIpc() != nullptr) << "\n";
  try {
    const bool made = kernels::MakeCudaGraph(0) != nullptr;
    std::cout << "graph " << (made ? "made" : "that of the fake") << "\n";
  } catch (const c10::Error& error) {
    std::cout << "graph " << error.what_without_backtrace() << "\n";
  }
  return 0;
}
