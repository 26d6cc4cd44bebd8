#include "models/programs/program.h"

#include <c10/util/Exception.h>

#include <array>
#include <fstream>
#include <string_view>
#include <utility>

#include "models/api/error.h"
#include "models/api/error_text.h"
#include "models/programs/on_gpu.h"
#include "models/programs/package.h"
#include "models/programs/program_options.h"
#include "models/programs/torch_script.h"

namespace saccade::models {
namespace {

// Both formats are zip archives; for other files their readers' errors would not be helpful.
void RequireZip(const std::string& path, const char* made_by) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw LoadError("the program cannot be opened");
  std::array<char, 4> start{};
  file.read(start.data(), start.size());
  if (std::string_view(start.data(), start.size()) == std::string_view("PK\x03\x04", 4)) return;
  throw LoadError(std::string("the program is not a zip archive; expected a file written by ") + made_by);
}

std::unique_ptr<TensorProgram> Load(const std::string& path, ProgramOptions options) {
  if (path.ends_with(".pt2")) {
    RequireZip(path, "torch._inductor.aoti_compile_and_package");
    return LoadPackage(path, std::move(options));
  }
  RequireZip(path, "torch.jit.save");
  return LoadTorchScript(path, std::move(options));
}

}  // namespace

std::unique_ptr<TensorProgram> LoadProgram(const std::string& path, ProgramOptions options) {
  CheckProgramOptions(options.options);
  if (options.signature.inputs.empty() || options.signature.outputs.empty())
    throw LoadError("the configuration must describe the program's inputs and outputs, at least one of each");
  try {
    if (!options.gpu) return Load(path, std::move(options));
    const int gpu = *options.gpu;
    return LoadProgramOnGpu(gpu, AllowsTf32(options.options), [&] { return Load(path, std::move(options)); });
  } catch (const LoadError& error) {
    throw LoadError(ErrorText(error));
  } catch (const std::exception& error) {
    throw LoadError("cannot load the program: " + ErrorText(error));
  }
}

}  // namespace saccade::models
