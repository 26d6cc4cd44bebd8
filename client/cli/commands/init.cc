// Includes models/ to read weights files as the daemon does.
#include "client/cli/commands/init.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/cli/commands/init_folder.h"
#include "client/cli/commands/init_graph.h"
#include "client/cli/output/failure.h"
#include "models/api/error.h"
#include "models/api/registry.h"
#include "models/networks/recognise.h"
#include "models/weights/format/safetensors.h"
#include "models/weights/format/weights_format.h"
#include "models/weights/format/zip_reader.h"

namespace saccade::client {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMaxLabelsBytes = int64_t{16} << 20;

std::string ParameterLine(const std::string& key, const std::string& value) {
  return absl::StrCat("parameters { key: \"", key, "\" value { string_value: \"", value, "\" } }\n");
}

bool HasName(const std::vector<std::string>& names, const std::string& part) {
  return std::any_of(names.begin(), names.end(),
                     [&](const std::string& name) { return absl::StrContains(name, part); });
}

ModelFolder FolderOfProgram(const std::string& what, const std::string& file_name) {
  return {.what = what,
          .config =
              "backend: \"pytorch\"\nmax_batch_size: 8\n"
              "input [ { name: \"INPUT__0\" data_type: TYPE_FP32 dims: [ 3, -1, -1 ] } ]\n"
              "output [ { name: \"OUTPUT__0\" data_type: TYPE_FP32 dims: [ -1 ] } ]\n",
          .file_name = file_name,
          .notes = {"the inputs and outputs in config.pbtxt are an example: write the program's own there",
                    "a program is code; the daemon loads it only with --allow-executable-models"}};
}

bool IsZip(std::string_view file) { return file.starts_with("PK"); }

// Pickles of version 2 and later, as PyTorch wrote them before it wrote archives.
bool IsPickle(std::string_view file) { return file.starts_with('\x80'); }

// Its header is JSON, behind 8 bytes that hold the header's length.
bool LooksLikeSafetensors(std::string_view file) { return file.size() > 8 && file[8] == '{'; }

// Returns nothing if the file holds weights and not a program.
std::optional<ModelFolder> ProgramOf(models::Bytes file) {
  const std::vector<std::string> names = models::ZipNames(file);
  if (HasName(names, "/constants.pkl")) return FolderOfProgram("a TorchScript program", "model.pt");
  if (HasName(names, "/aotinductor/")) return FolderOfProgram("a package of AOTInductor", "model.pt2");
  return std::nullopt;
}

models::Recognised NetworkOf(const InitCommand& command, models::Bytes file, bool safetensors) {
  const std::vector<models::TensorEntry> entries = models::ParseWeights(file);
  if (!command.architecture.empty()) return models::RecogniseAs(command.architecture, entries);
  if (safetensors) {
    const auto metadata = models::SafetensorsMetadata(file);
    if (const auto found = metadata.find("saccade.architecture"); found != metadata.end())
      return {.architecture = found->second, .notes = {"its metadata name the architecture and the options"}};
  }
  return models::Recognise(entries);
}

ModelFolder FolderOfWeights(const InitCommand& command, models::Bytes file, bool safetensors) {
  const models::Recognised found = NetworkOf(command, file, safetensors);
  const models::Description description = models::Describe(found.architecture, found.options);
  ModelFolder made{
      .what = absl::StrCat(safetensors ? "a safetensors file" : "a state_dict", " of ", found.architecture,
                           found.classes > 0 ? absl::StrCat(" with ", found.classes, " classes") : ""),
      .file_name = safetensors ? "weights.safetensors" : "weights.pt",
      .classes = found.classes,
      .notes = found.notes};
  const int batch = description.task == models::Task::kClassification ? 8 : 2;
  made.config = absl::StrCat("backend: \"saccade\"\nmax_batch_size: ", batch, "\n",
                             ParameterLine("architecture", found.architecture));
  for (const auto& [name, value] : found.options) absl::StrAppend(&made.config, ParameterLine(name, value));
  return made;
}

// Reads the labels and compares their number with the classes'. Throws LoadError.
std::string ReadLabels(const std::string& path, int64_t classes) {
  std::error_code error;
  const auto size = fs::file_size(path, error);
  if (error) throw models::LoadError(absl::StrCat(path, ": cannot be read: ", error.message()));
  if (size > kMaxLabelsBytes)
    throw models::LoadError(
        absl::StrCat(path, ": has ", size, " bytes; labels have at most ", kMaxLabelsBytes));
  std::ifstream file(path, std::ios::binary);
  std::string labels{std::istreambuf_iterator<char>(file), {}};
  if (!labels.empty() && labels.back() != '\n') labels += '\n';
  const auto lines = std::count(labels.begin(), labels.end(), '\n');
  if (classes > 0 && lines != classes) {
    throw models::LoadError(absl::StrCat(path, ": has ", lines, " labels; the network has ", classes,
                                         " classes (a detector's include the background, in the first line); "
                                         "write one label per line"));
  }
  return labels;
}

ModelFolder Inspect(const InitCommand& command) {
  const auto file = models::ReadWeightsIndex(command.weights);
  try {
    const std::string_view bytes(reinterpret_cast<const char*>(file->bytes().data()), file->bytes().size());
    if (IsOnnx(command.weights, bytes)) return FolderOfOnnx(command.weights, bytes, !command.labels.empty());
    if (absl::EndsWithIgnoreCase(command.weights, ".xml"))
      throw models::LoadError(
          "looks like OpenVINO's IR, which has no description that this command could write; put it as "
          "1/model.xml, "
          "with its 1/model.bin, into the model's folder, and name its tensors in config.pbtxt "
          "(docs/models.md)");
    const bool zip = IsZip(bytes), safetensors = !zip && !IsPickle(bytes);
    if (safetensors && !LooksLikeSafetensors(bytes)) {
      throw models::LoadError(
          "holds no weights that this command knows: expected safetensors, what torch.save or torch.jit.save "
          "writes, or ONNX; save model.state_dict() again, and copy the file as a whole");
    }
    if (zip) {
      if (auto program = ProgramOf(file->bytes())) return *std::move(program);
    }
    return FolderOfWeights(command, file->bytes(), safetensors);
  } catch (const models::LoadError& error) {
    throw models::LoadError(absl::StrCat(command.weights, ": ", error.what()));
  }
}

}  // namespace

int RunInit(const InitCommand& command, Console& console) {
  const fs::path folder = command.folder;
  std::error_code ignored;
  if (fs::exists(folder / "config.pbtxt", ignored) || fs::exists(folder / "1", ignored)) {
    Complain(console, absl::StrCat(command.folder, " holds a model already; name a new folder, such as ",
                                   (folder.parent_path() / "NAME").string()));
    return kExitUsage;
  }
  try {
    const ModelFolder made = Inspect(command);
    const std::string labels = command.labels.empty() ? "" : ReadLabels(command.labels, made.classes);
    if (absl::Status written = WriteFolder(folder, made, command.weights, labels); !written.ok()) {
      Complain(console, written.message());
      return kExitFailure;
    }
    console.out << Printable(absl::StrCat(command.weights, " is ", made.what)) << '\n';
    for (const std::string& note : made.notes) console.out << "  " << Printable(note) << '\n';
    if (labels.empty() && made.classes > 0)
      console.out << "  it has no labels; write one per line into "
                  << Printable((folder / "labels.txt").string()) << made.labels_too << '\n';
    console.out << "wrote " << Printable(command.folder) << "; check it with saccaded --check-config "
                << "--model-repository " << Printable((folder / "..").lexically_normal().string()) << '\n';
  } catch (const models::LoadError& error) {
    Complain(console, error.what());
    return kExitFailure;
  }
  return Flush(console) ? kExitOk : kExitFailure;
}

}  // namespace saccade::client
