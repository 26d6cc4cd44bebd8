// Fuzzes the look through an ONNX file before OpenVINO reads it, and what `saccade init` reads of it.
#include <cstdint>
#include <string_view>

#include "models/api/error.h"
#include "models/graphs/onnx_file.h"
#include "models/graphs/onnx_ports.h"
#include "tests/fuzz/costs.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const saccade::fuzz::Costs costs(size);
  try {
    for (const auto& found : saccade::models::LookThroughOnnx({reinterpret_cast<const char*>(data), size})) {
      // Where nothing is, so that the file system's state does not matter.
      saccade::models::CheckExternalData(found, "/proc/self/fdinfo");
    }
  } catch (const saccade::models::LoadError&) {
  }
  try {
    const auto summary = saccade::models::SummariseOnnx({reinterpret_cast<const char*>(data), size});
    for (const auto& port : summary.inputs) saccade::models::DescribePort(port);
  } catch (const saccade::models::LoadError&) {
  }
  return 0;
}
