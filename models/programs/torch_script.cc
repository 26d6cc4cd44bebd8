#include "models/programs/torch_script.h"

#include <ATen/core/grad_mode.h>
#include <c10/core/InferenceMode.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/ir/alias_analysis.h>
#include <torch/csrc/jit/passes/inliner.h>
#include <torch/csrc/jit/passes/tensorexpr_fuser.h>
#include <torch/csrc/jit/runtime/graph_executor.h>
#include <torch/csrc/jit/serialization/import.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "models/api/error.h"
#include "models/api/error_text.h"
#include "models/device/libtorch_version.h"
#include "models/programs/program_options.h"
#include "models/programs/script_interface.h"
#include "models/programs/torchvision_operators.h"
#include "models/programs/values.h"

namespace saccade::models {
namespace {

using torch::jit::Module;
using Value = TensorProgram::Value;

// The fuser would compile code for each new shape while the first request with that shape waits.
void FuseNothing() {
  static const bool done = [] {
    torch::jit::setTensorExprFuserEnabled(false);
    return true;
  }();
  (void)done;
}

Module Read(const std::string& path, std::optional<int> gpu) {
  std::optional<c10::Device> device = c10::Device(c10::kCPU);
  if (gpu) device = c10::Device(c10::kCUDA, static_cast<c10::DeviceIndex>(*gpu));
  try {
    return torch::jit::load(path, device);
  } catch (const std::exception& error) {
    const std::string text = ErrorText(error);
    std::string hint;
    if (text.find("constants.pkl") != std::string::npos) {
      hint =
          ". Expected a TorchScript archive written by torch.jit.save, not weights alone (torch.save) or an "
          "exported "
          "program (.pt2)";
    } else if (text.find("supported version for reading") != std::string::npos) {
      hint = ". The daemon has LibTorch " + LibTorchVersion() +
             "; save the program with this version of torch or an older one";
    } else if (text.find("Unknown builtin op") != std::string::npos) {
      hint = ". The daemon has PyTorch's own operators, of LibTorch " + LibTorchVersion() +
             ", torch.ops.saccade, and torchvision's nms and roi_align; operators of other libraries and of "
             "newer versions are not available";
    }
    throw LoadError("cannot load the program as TorchScript: " + text + hint);
  }
}

// Whether a node of the block writes to a tensor that `dict` may contain. AliasDb::hasWriters tells only who
// writes to the dict itself.
bool WritesToContents(const torch::jit::AliasDb& aliases, torch::jit::Block& block, torch::jit::Value* dict) {
  const auto written = [&](torch::jit::Value* value) {
    return aliases.hasWriters(value) && aliases.mayContainAlias(value, dict);
  };
  for (torch::jit::Node* const node : block.nodes()) {
    const auto inputs = node->inputs();
    const auto outputs = node->outputs();
    if (std::any_of(inputs.begin(), inputs.end(), written)) return true;
    if (std::any_of(outputs.begin(), outputs.end(), written)) return true;
    for (torch::jit::Block* const inner : node->blocks()) {
      if (WritesToContents(aliases, *inner, dict)) return true;
    }
  }
  return false;
}

// For each of forward's arguments, without self, whether forward may write to it or to what it contains.
std::vector<bool> WrittenArguments(const torch::jit::Method& forward) {
  const std::shared_ptr<torch::jit::Graph> graph = forward.graph()->copy();
  torch::jit::Inline(*graph);
  const torch::jit::AliasDb aliases(graph);
  std::vector<bool> written;
  for (size_t i = 1; i < graph->inputs().size(); ++i) {
    torch::jit::Value* const argument = graph->inputs()[i];
    const bool dict = argument->type()->kind() == c10::TypeKind::DictType;
    written.push_back(aliases.hasWriters(argument) ||
                      (dict && WritesToContents(aliases, *graph->block(), argument)));
  }
  return written;
}

class TorchScript : public TensorProgram {
 public:
  TorchScript(Module module, ProgramOptions options)
      : options_(std::move(options)),
        notes_(NotesOnOptions(options_.options)),
        module_(std::move(module)),
        interface_(module_.get_method("forward").function().getSchema(), options_.signature),
        written_(WrittenArguments(module_.get_method("forward"))) {}

  const Signature& signature() const override { return options_.signature; }
  const std::vector<std::string>& notes() const override { return notes_; }

  std::vector<Value> Run(std::vector<Value> inputs) const override {
    const c10::InferenceMode inference(InferenceMode(options_.options));
    const at::NoGradGuard no_gradients;
    const torch::jit::GraphOptimizerEnabledGuard optimized(OptimizedExecution(options_.options));
    const int64_t rows = RowsOf(signature(), inputs);
    std::vector<Value> arguments = interface_.Arguments(std::move(inputs));
    for (size_t i = 0; i < arguments.size(); ++i) {
      if (written_[i]) arguments[i] = arguments[i].deepcopy();
    }
    // Methods are called on a module object; `module_` is const because forward() does not change it.
    const Value returned = module_.get_method("forward")(std::move(arguments));
    return CheckOutputs(signature(), rows, interface_.Outputs(returned));
  }

 private:
  const ProgramOptions options_;
  const std::vector<std::string> notes_;
  const Module module_;
  const ScriptInterface interface_;
  const std::vector<bool> written_;
};

}  // namespace

std::unique_ptr<TensorProgram> LoadTorchScript(const std::string& path, ProgramOptions options) {
  FuseNothing();
  RegisterTorchvisionOperators();
  Module module = Read(path, options.gpu);
  if (!module.find_method("forward")) throw LoadError("the program has no method 'forward'");
  module.eval();
  return std::make_unique<TorchScript>(std::move(module), std::move(options));
}

}  // namespace saccade::models
