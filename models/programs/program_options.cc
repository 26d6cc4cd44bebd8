#include "models/programs/program_options.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "models/api/error.h"
#include "models/api/text.h"

namespace saccade::models {
namespace {

constexpr std::array<std::string_view, 3> kUsedParameters = {"ALLOW_TF32", "DISABLE_OPTIMIZED_EXECUTION",
                                                             "INFERENCE_MODE"};

// These change how Triton computes, but not the results. Here weights are always shared, the thread count is
// --threads-per-instance, and nothing is fused.
// Only older versions of Triton read ENABLE_NVFUSER.
constexpr std::array<std::string_view, 9> kIgnoredParameters = {
    "DISABLE_CUDNN",         "ENABLE_CACHE_CLEANING", "ENABLE_JIT_EXECUTOR",
    "ENABLE_JIT_PROFILING",  "ENABLE_NVFUSER",        "ENABLE_TENSOR_FUSER",
    "ENABLE_WEIGHT_SHARING", "INTER_OP_THREAD_COUNT", "INTRA_OP_THREAD_COUNT"};

template <typename Names>
bool Among(const Names& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

template <typename Names>
std::string Joined(const Names& names) {
  std::string joined;
  for (const std::string_view name : names) {
    if (!joined.empty()) joined += ", ";
    joined += name;
  }
  return joined;
}

bool FlagOf(const Options& options, const std::string& name, bool otherwise) {
  const auto found = options.find(name);
  return found == options.end() ? otherwise : found->second == "true";
}

}  // namespace

void CheckProgramOptions(const Options& options) {
  for (const auto& [name, value] : options) {
    if (!Among(kUsedParameters, name)) continue;
    if (value != "true" && value != "false")
      throw LoadError("parameter " + name + " is " + Quote(value) + ", expected true or false");
  }
}

std::vector<std::string> NotesOnOptions(const Options& options) {
  std::vector<std::string> notes;
  for (const auto& [name, value] : options) {
    if (Among(kIgnoredParameters, name) || Among(kUsedParameters, name)) continue;
    notes.push_back("parameter " + Quote(name) +
                    " is ignored: it is unknown to backend pytorch, which uses " + Joined(kUsedParameters));
  }
  return notes;
}

bool InferenceMode(const Options& options) { return FlagOf(options, "INFERENCE_MODE", true); }

bool AllowsTf32(const Options& options) { return FlagOf(options, "ALLOW_TF32", false); }

bool OptimizedExecution(const Options& options) {
  return !FlagOf(options, "DISABLE_OPTIMIZED_EXECUTION", false);
}

}  // namespace saccade::models
