// The device that a network computes on, and the precision. Does not include LibTorch.
#pragma once

#include <string>

#include "models/api/options.h"

namespace saccade::models {

class Calibration;

// kInt8: convolutions whose weights are quantized compute with 8 bits, everything else with bfloat16 where
// the processor multiplies it, and with float32 elsewhere.
enum class Precision { kFloat32, kTf32, kBFloat16, kFloat16, kInt8 };

// Returns "fp32", "tf32", "bf16", "fp16" or "int8".
const char* PrecisionName(Precision precision);
// Value of the option `precision`, which every architecture has; kFloat32 if it is not given or "auto".
// float32, bfloat16 and float16 are accepted as well. Throws a LoadError that lists the legal values.
Precision PrecisionOf(const Options& options);
// Whether the option is "auto": the code that loads the network measures which precision to load it with.
bool IsPrecisionAuto(const Options& options);
Options WithPrecision(Options options, Precision precision);
Options WithoutPrecision(Options options);

// Whether this machine's processor multiplies bfloat16 itself, so that it is faster than float32.
bool CpuMultipliesBFloat16();
// Whether it sums products of bytes itself (VNNI).
bool CpuMultipliesInt8();
// Throws a LoadError if a processor cannot compute in `precision`. `native`: whether it has instructions for
// it; by default those of this machine's are looked up.
void CheckCpuPrecision(Precision precision);
void CheckCpuPrecision(Precision precision, bool native);

// What a network is loaded for.
struct Target {
  int gpu = -1;  // -1: the CPU
  Precision precision = Precision::kFloat32;
  // For tests: record and replay passes on the CPU too. A replay runs the pass again, with the new extents
  // passed only as a tensor.
  bool replay_on_cpu = false;
  // Measures what quantizing needs, if set; not owned, and outlives the network. For float32 on the CPU.
  Calibration* calibration = nullptr;

  bool on_gpu() const { return gpu >= 0; }
  // Whether convolutions have packed weights, as they do wherever the CPU serves: oneDNN's, or those of our
  // kernel for inverted residuals. All others use ATen's operators, which run on both the CPU and the GPU; on
  // the CPU only tests do so.
  bool packed() const {
    return !on_gpu() && !replay_on_cpu &&
           (precision == Precision::kFloat32 || precision == Precision::kBFloat16 ||
            precision == Precision::kInt8);
  }
};

}  // namespace saccade::models
