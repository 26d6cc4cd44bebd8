// Checks the file of a graph before the daemon gives it to OpenVINO, whose readers are made for files that
// their user trusts.
#pragma once

#include <cstdint>
#include <string>

namespace saccade::models {

struct GraphCheckLimits {
  // Address space of the checking process beyond 8 times the size of the files. Each file counts once,
  // however many tensors refer to it.
  uint64_t memory_bytes = uint64_t{2} << 30;
  int processor_seconds = 600;
  // Until the check is given up.
  int seconds = 300;
};

// Checks the sizes of the files, an ONNX file's messages and where its external data lies, and that an .xml
// file has its .bin file, which is not outside of `repository`, also through links. If `repository` is empty,
// it is the file's own folder. Other files are looked for beside `path`, even if that is a link, as OpenVINO
// does. Then has another process, saccade-openvino-check in GraphPluginFolder(), read and
// compile the file: if OpenVINO crashes, hangs or takes all memory, that process ends and not the daemon.
// Blocks. Throws a LoadError.
void CheckGraphFile(const std::string& path, const std::string& repository,
                    const GraphCheckLimits& limits = {});

}  // namespace saccade::models
