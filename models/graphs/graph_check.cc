#include "models/graphs/graph_check.h"

#include <filesystem>
#include <memory>
#include <set>
#include <string_view>

#include "models/api/error.h"
#include "models/api/paths.h"
#include "models/api/text.h"
#include "models/graphs/check_process.h"
#include "models/graphs/onnx_file.h"
#include "models/weights/format/file_contents.h"

namespace saccade::models {
namespace {

namespace fs = std::filesystem;

// Protobuf's own bound.
constexpr int64_t kMaxOnnxBytes = int64_t{2} << 30;
constexpr uint64_t kMaxXmlBytes = uint64_t{256} << 20;
constexpr uint64_t kMaxDataBytes = uint64_t{64} << 30;

uint64_t SizeOf(const fs::path& path, uint64_t max, const char* advice) {
  std::error_code error;
  const bool is_file = fs::is_regular_file(path, error);
  const uint64_t size = is_file ? fs::file_size(path, error) : 0;
  if (!is_file || error || size == 0)
    throw LoadError(Quote(path.filename().string()) + " is missing, empty or no file; " + advice);
  if (size <= max) return size;
  throw LoadError(Quote(path.filename().string()) + " has " + std::to_string(size) +
                  " bytes, expected at most " + std::to_string(max));
}

// Returns the bytes of the file and of the files that it refers to, each of which counts once.
uint64_t CheckOnnx(const std::string& path) {
  const fs::path folder = fs::path(path).parent_path();
  uint64_t bytes = SizeOf(path, kMaxOnnxBytes, "expected an ONNX model; save larger ones with external data");
  const std::shared_ptr<const FileContents> file = FileContents::Read(path, kMaxOnnxBytes);
  const Bytes content = file->bytes();
  const std::string_view text(reinterpret_cast<const char*>(content.data()), content.size());
  std::set<fs::path> counted;
  // Sum over all references, many of which may be to the same bytes: OpenVINO copies each.
  uint64_t referred = 0;
  for (const ExternalData& data : LookThroughOnnx(text)) {
    CheckExternalData(data, folder);
    const fs::path data_file = fs::canonical(folder / data.location);
    const uint64_t size = fs::file_size(data_file);
    if (counted.insert(data_file).second) bytes += size;
    referred += data.length > 0 ? data.length : size;
    if (bytes > kMaxDataBytes || referred > kMaxDataBytes)
      throw LoadError("the ONNX model has more than " + std::to_string(kMaxDataBytes) +
                      " bytes of external data");
  }
  return bytes;
}

uint64_t CheckXml(const std::string& path, const std::string& repository) {
  const uint64_t bytes = SizeOf(path, kMaxXmlBytes, "expected a model of OpenVINO's");
  const fs::path weights = fs::path(path).replace_extension(".bin");
  std::error_code error;
  const fs::path root =
      fs::canonical(repository.empty() ? fs::path(path).parent_path() : fs::path(repository), error);
  if (error) throw LoadError("the folder of the .xml file cannot be read: " + error.message());
  const fs::path file = fs::weakly_canonical(weights, error);
  if (error || !IsInside(file, root))
    throw LoadError(
        Quote(weights.filename().string()) +
        " leads out of the model repository; put the file itself beside the .xml file, or link to "
        "a file in the repository");
  return bytes + SizeOf(weights, kMaxDataBytes, "expected the weights beside the .xml file");
}

}  // namespace

void CheckGraphFile(const std::string& path, const std::string& repository, const GraphCheckLimits& limits) {
  const uint64_t bytes = path.ends_with(".xml") ? CheckXml(path, repository) : CheckOnnx(path);
  RunCheckProcess(path, limits.memory_bytes + 8 * bytes, limits);
}

}  // namespace saccade::models
