// Declares the namespace torch.ops.saccade. Each operator registers itself from its own folder.
#include <torch/library.h>

#include <string>

#include "kernels/common/cpu_isa.h"

TORCH_LIBRARY(saccade, m) {
  m.def("cpu_isa() -> str",
        [] { return std::string(saccade::kernels::CpuIsaName(saccade::kernels::BestCpuIsa())); });
}
