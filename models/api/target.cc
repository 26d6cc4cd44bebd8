#include "models/api/target.h"

#include <array>
#include <utility>

#include "kernels/common/cpu_isa.h"
#include "models/api/error.h"
#include "models/api/text.h"

namespace saccade::models {
namespace {

// The first name of a precision is the one that is shown.
constexpr std::array<std::pair<Precision, const char*>, 8> kNames = {{{Precision::kFloat32, "fp32"},
                                                                      {Precision::kTf32, "tf32"},
                                                                      {Precision::kBFloat16, "bf16"},
                                                                      {Precision::kFloat16, "fp16"},
                                                                      {Precision::kInt8, "int8"},
                                                                      {Precision::kFloat32, "float32"},
                                                                      {Precision::kBFloat16, "bfloat16"},
                                                                      {Precision::kFloat16, "float16"}}};

constexpr char kAuto[] = "auto";

Precision Parse(const std::string& name) {
  for (const auto& [precision, known] : kNames) {
    if (name == known) return precision;
  }
  throw LoadError("the option precision is " + Quote(name) +
                  ", expected auto, fp32, tf32, bf16, fp16 or int8");
}

}  // namespace

const char* PrecisionName(Precision precision) {
  for (const auto& [known, name] : kNames) {
    if (known == precision) return name;
  }
  return "";
}

Precision PrecisionOf(const Options& options) {
  const auto found = options.find("precision");
  if (found == options.end() || found->second == kAuto) return Precision::kFloat32;
  return Parse(found->second);
}

bool IsPrecisionAuto(const Options& options) {
  const auto found = options.find("precision");
  return found != options.end() && found->second == kAuto;
}

Options WithPrecision(Options options, Precision precision) {
  options["precision"] = PrecisionName(precision);
  return options;
}

Options WithoutPrecision(Options options) {
  options.erase("precision");
  return options;
}

bool CpuMultipliesBFloat16() { return kernels::MultipliesBFloat16(); }

bool CpuMultipliesInt8() { return kernels::MultipliesInt8(); }

void CheckCpuPrecision(Precision precision) {
  CheckCpuPrecision(precision, precision == Precision::kInt8 ? CpuMultipliesInt8() : CpuMultipliesBFloat16());
}

void CheckCpuPrecision(Precision precision, bool native) {
  if (precision == Precision::kFloat32) return;
  const std::string name = PrecisionName(precision);
  if (precision != Precision::kBFloat16 && precision != Precision::kInt8) {
    throw LoadError("precision is " + name +
                    ", which needs a GPU; expected fp32, bf16, int8 or auto on the CPU. " +
                    "Change the option, or give the model an instance_group of KIND_GPU");
  }
  if (native) return;
  if (precision == Precision::kInt8) {
    throw LoadError(
        "precision is int8, but this processor has no instructions for it (avx512_vnni or avx_vnni); " +
        std::string("set precision to fp32, or to auto, which chooses int8 only where it is faster"));
  }
  throw LoadError("precision is bf16, but this processor has no instructions for it (avx512_bf16), without " +
                  std::string("which it is slower than fp32; set precision to fp32, or to auto, which ") +
                  "chooses bf16 only where it is faster");
}

}  // namespace saccade::models
