// Stands in for cuda_ipc.cc on a machine without a GPU: a file is a GPU's memory.
//
// A handle is the text "GPU <gpu> PROCESS <pid> <path>", filled up with zeros: memory of GPU <gpu>, which is
// the file <path>, and was allocated by the process <pid>. If SACCADE_FAKE_CUDA_IPC_LOG is in the
// environment, "open <path>" and "close <path>" are appended to the file that it names.
#pragma once

#include "kernels/common/cuda_ipc.h"

extern "C" {

// The symbol of the plugin.
const saccade::kernels::CudaIpc* saccade_cuda_ipc();

// Number of blocks that are open.
int saccade_fake_cuda_ipc_blocks();

}  // extern "C"
