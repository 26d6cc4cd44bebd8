// Interface between the tensors of attention_cuda.cc and the kernels of attention.cu. Includes neither CUDA's
// nor LibTorch's headers.
#pragma once

#include <cstdint>

#include "kernels/attention/attention_problem.h"

namespace saccade::kernels {

// Returns the size in floats of the device memory that the launch needs, or -1 if the problem exceeds the
// kernels' grids.
int64_t AttentionCudaWorkspaceFloats(const AttentionProblem& problem);

// Enqueues the kernels on `stream` (a cudaStream_t) without blocking. Returns null, or CUDA's error message.
// All pointers are to device memory; maps must not be float64. Does not allocate or synchronise, so that the
// call can be captured.
const char* LaunchAttentionCuda(const AttentionProblem& problem, float* workspace, void* stream);

// Softmax attention by a library, between two launches; see attention_packed.cuh. All pointers are to device
// memory.
struct AttentionPacked {
  int64_t head_channels = 0;
  // [B * positions, heads, head_channels] and, for k and v, [B * keys, heads, head_channels], in the maps'
  // type.
  void* q = nullptr;
  void* k = nullptr;
  void* v = nullptr;
  const void* out = nullptr;        // like q, written by the library
  int32_t* query_starts = nullptr;  // [B + 1]: row of each sample's first query
  int32_t* key_starts = nullptr;    // [B + 1]
  int32_t* used_keys = nullptr;     // [B]: number of each sample's keys
};

// How to call the library.
struct AttentionPackedShape {
  int64_t head_channels = 0;  // 0: the attention core computes the problem
  int64_t keys = 0;           // per sample
  int64_t workspace_floats = 0;
};
AttentionPackedShape AttentionPackedShapeOf(const AttentionProblem& problem);

// Like LaunchAttentionCuda: what is done before and after the library, with the same workspace.
const char* LaunchAttentionPack(const AttentionProblem& problem, const AttentionPacked& packed,
                                float* workspace, void* stream);
const char* LaunchAttentionUnpack(const AttentionProblem& problem, const AttentionPacked& packed,
                                  float* workspace, void* stream);

}  // namespace saccade::kernels
