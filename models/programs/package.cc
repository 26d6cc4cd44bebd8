#include "models/programs/package.h"

#include <ATen/cpu/Utils.h>
#include <ATen/ops/cat.h>
#include <c10/core/InferenceMode.h>
#include <c10/util/Exception.h>
#include <caffe2/serialize/inline_container.h>
#include <dlfcn.h>
#include <torch/csrc/export/pt2_archive_constants.h>
#include <torch/csrc/inductor/aoti_package/model_package_loader.h>

#include <array>
#include <atomic>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "models/api/error.h"
#include "models/api/error_text.h"
#include "models/device/libtorch_version.h"
#include "models/device/out_of_memory.h"
#include "models/programs/error_output.h"
#include "models/programs/positions.h"
#include "models/programs/program_options.h"
#include "models/programs/values.h"

namespace saccade::models {
namespace {

using torch::inductor::AOTIModelPackageLoader;
using Metadata = std::unordered_map<std::string, std::string>;
using Value = TensorProgram::Value;

constexpr const char* kModel = "model";  // the name that aoti_compile_and_package gives the model

// Packages link libtorch.so, which only pulls in all CUDA libraries. This opens our empty stand-in instead,
// which has that soname; a libtorch.so that is installed works as well.
void OpenStandIn() {
  static const std::string error = []() -> std::string {
    for (const char* const name : {"libsaccade_torch_stand_in.so", "libtorch.so"}) {
      if (dlopen(name, RTLD_NOW | RTLD_LOCAL) != nullptr) return "";
    }
    return dlerror();
  }();
  if (!error.empty()) throw LoadError("cannot load packages: " + error);
}

Metadata ReadMetadata(const std::string& path) {
  try {
    return AOTIModelPackageLoader::load_metadata_from_package(path, kModel);
  } catch (const std::exception& error) {
    throw LoadError("the program is not an AOTInductor package: " + ErrorText(error) +
                    ". An exported program (torch.export.save) must be compiled first with "
                    "torch._inductor.aoti_compile_and_package");
  }
}

// Which versions fit, as the end of an error. A package does not say which torch has compiled it.
std::string Expected() {
  const std::string version = LibTorchVersion();
  return ". The daemon has LibTorch " + version + "; compile the package with torch " + version;
}

// Returns the version of the package's layout. Null if it has none, or if the archive is not one that torch's
// own writer has made: LibTorch's loader, which is less strict, then finds out what is wrong with it.
std::optional<std::string> ArchiveVersion(const std::string& path) {
  try {
    caffe2::serialize::PyTorchStreamReader reader(path);
    const std::string record(torch::_export::archive_spec::ARCHIVE_VERSION_PATH);
    if (!reader.hasRecord(record)) return std::nullopt;
    const auto [data, size] = reader.getRecord(record);
    return std::string(static_cast<const char*>(data.get()), size);
  } catch (const c10::Error&) {
    return std::nullopt;
  }
}

// LibTorch does not compare the version itself.
void CheckArchiveVersion(const std::string& path) {
  constexpr std::string_view kKnown = torch::_export::archive_spec::ARCHIVE_VERSION_VALUE;
  const std::optional<std::string> version = ArchiveVersion(path);
  if (!version || *version == kKnown) return;
  throw LoadError("the package's archive has the version " + *version + "; expected " + std::string(kKnown) +
                  Expected());
}

// Without this check, an unsupported instruction would end the process.
void CheckProcessor(const Metadata& metadata) {
  constexpr std::array<std::pair<const char*, const char*>, 4> kInstructionSets = {
      {{"AVX2", "avx2"}, {"AVX512", "avx512_f"}, {"AVX512_VNNI", "avx512_vnni"}, {"AMX_TILE", "amx_tile"}}};
  const auto compiled_for = metadata.find("AOTI_CPU_ISA");
  if (compiled_for == metadata.end()) return;
  const std::string sets = " " + compiled_for->second + " ";
  const auto has = at::cpu::get_cpu_capabilities();
  for (const auto& [set, capability] : kInstructionSets) {
    if (sets.find(std::string(" ") + set + " ") == std::string::npos) continue;
    const auto found = has.find(capability);
    if (found != has.end() && found->second.isBool() && found->second.toBool()) continue;
    throw LoadError("the package was compiled for processors with " + compiled_for->second +
                    "; this one lacks " + set);
  }
}

void CheckDevice(const Metadata& metadata, bool gpu) {
  const auto device = metadata.find("AOTI_DEVICE_KEY");
  if (device == metadata.end()) throw LoadError("the package does not say for which device it was compiled");
  const char* const wanted = gpu ? "cuda" : "cpu";
  if (device->second == wanted) return;
  throw LoadError("the package was compiled for " + device->second + ", but its instances run on " + wanted +
                  " (instance_group)");
}

// Returns the number of leaves in a tree of arguments or results, as PyTorch describes it.
size_t LeavesOf(const std::string& spec) {
  constexpr std::string_view kLeaf = R"("type": null)";
  size_t count = 0;
  for (size_t at = spec.find(kLeaf); at != std::string::npos; at = spec.find(kLeaf, at + 1)) ++count;
  return count;
}

void RefuseOptional(const std::vector<TensorSignature>& inputs) {
  for (const TensorSignature& input : inputs) {
    if (input.optional)
      throw LoadError("'" + input.name + "' is optional; AOTInductor packages need all of their inputs");
  }
}

void RefuseTexts(const std::vector<TensorSignature>& tensors) {
  for (const TensorSignature& tensor : tensors) {
    if (tensor.type == DataType::kBytes)
      throw LoadError("'" + tensor.name + "' is BYTES; AOTInductor packages support only numeric tensors");
  }
}

class Package : public TensorProgram {
 public:
  Package(const std::string& path, ProgramOptions options)
      : options_(std::move(options)),
        notes_(NotesOnOptions(options_.options)),
        loader_(path, kModel, /*run_single_threaded=*/false, static_cast<size_t>(options_.instances),
                static_cast<c10::DeviceIndex>(options_.gpu.value_or(-1))) {
    const std::vector<std::string> trees = loader_.get_call_spec();
    const size_t takes = LeavesOf(trees.at(0));
    if (takes != signature().inputs.size()) {
      throw LoadError("the package takes " + std::to_string(takes) +
                      " tensors, but the configuration describes " +
                      std::to_string(signature().inputs.size()) + " inputs");
    }
    inputs_ = PositionsOf(signature().inputs, {}, takes, "input");
    outputs_ = PositionsOf(signature().outputs, {}, LeavesOf(trees.at(1)), "output");
  }

  const Signature& signature() const override { return options_.signature; }
  const std::vector<std::string>& notes() const override { return notes_; }
  std::string remark() const override {
    if (!twice_.load(std::memory_order_relaxed)) return "";
    return "the package was compiled for two rows or more, so a single row is computed twice; compile it "
           "with "
           "inductor_configs={'aot_inductor.check_lowerbound': False} to avoid that";
  }

  std::vector<Value> Run(std::vector<Value> inputs) const override {
    const c10::InferenceMode inference;
    const int64_t rows = RowsOf(signature(), inputs);
    std::vector<at::Tensor> tensors(inputs.size());
    for (size_t i = 0; i < inputs.size(); ++i) {
      at::Tensor tensor = std::move(inputs[i]).toTensor();
      // A package may write to its inputs, which are the request's memory, and its metadata does not say
      // whether it does. On a GPU they are copies already.
      tensors[inputs_[i]] = options_.gpu ? std::move(tensor) : tensor.clone();
    }
    std::vector<at::Tensor> results = rows == 1 ? RunOne(tensors) : RunAll(std::move(tensors));
    std::vector<Value> outputs;
    for (const size_t position : outputs_) outputs.emplace_back(std::move(results.at(position)));
    return CheckOutputs(signature(), rows, std::move(outputs));
  }

 private:
  std::vector<at::Tensor> RunAll(std::vector<at::Tensor> tensors) const {
    ErrorOutput written;
    try {
      // The loader's functions are not const, but its container accepts any number of threads.
      return loader_.boxed_run(std::move(tensors));
    } catch (const std::exception& error) {
      // The exception tells where LibTorch has called the package, and the package has written why it failed.
      const std::string why = written.Take();
      throw std::runtime_error("the package failed, or was not compiled for these shapes: " +
                               (why.empty() ? ErrorText(error) : why));
    }
  }

  // Packages exported with a dynamic batch are compiled for two or more rows unless their author prevented
  // that, and reject a single row if their checks are enabled. In that case runs the row twice and returns
  // the first result. If two rows fail as well, tells both errors: the first may be about the number of rows
  // alone, and the second about a batch that nobody sent.
  std::vector<at::Tensor> RunOne(const std::vector<at::Tensor>& tensors) const {
    if (!twice_.load(std::memory_order_relaxed)) {
      try {
        return RunAll(tensors);
      } catch (const std::exception& error) {
        // Says nothing about the number of rows, and two rows take more.
        if (IsOutOfMemory(error)) throw;
        try {
          std::vector<at::Tensor> results = RunTwice(tensors);
          twice_.store(true, std::memory_order_relaxed);
          return results;
        } catch (const std::exception& second) {
          if (IsOutOfMemory(second)) throw;
          throw std::runtime_error(ErrorText(error) + ". With the row twice: " + ErrorText(second));
        }
      }
    }
    return RunTwice(tensors);
  }

  std::vector<at::Tensor> RunTwice(std::vector<at::Tensor> tensors) const {
    for (at::Tensor& tensor : tensors) tensor = at::cat({tensor, tensor});
    std::vector<at::Tensor> results = RunAll(std::move(tensors));
    for (at::Tensor& result : results) {
      if (result.dim() > 0 && result.size(0) == 2) result = result.narrow(0, 0, 1);
    }
    return results;
  }

  const ProgramOptions options_;
  const std::vector<std::string> notes_;
  mutable AOTIModelPackageLoader loader_;
  std::vector<size_t> inputs_;
  std::vector<size_t> outputs_;
  mutable std::atomic<bool> twice_ = false;
};

}  // namespace

std::unique_ptr<TensorProgram> LoadPackage(const std::string& path, ProgramOptions options) {
  RefuseTexts(options.signature.inputs);
  RefuseOptional(options.signature.inputs);
  RefuseTexts(options.signature.outputs);
  CheckArchiveVersion(path);
  const Metadata metadata = ReadMetadata(path);
  CheckDevice(metadata, options.gpu.has_value());
  CheckProcessor(metadata);
  OpenStandIn();
  try {
    return std::make_unique<Package>(path, std::move(options));
  } catch (const c10::Error& error) {
    // Its code calls LibTorch's functions, of which each version has more.
    const std::string text = ErrorText(error);
    if (text.find("undefined symbol") == std::string::npos) throw;
    throw LoadError("the package calls a function that this LibTorch does not have: " + text + Expected());
  }
}

}  // namespace saccade::models
