#include "server/lifecycle/check_instruction_set.h"

#include <cstdlib>
#include <stdexcept>
#include <string>

#include "kernels/common/cpu_isa.h"
#include "models/device/instruction_set.h"
#include "server/logging/log.h"

namespace saccade::server {

absl::Status CheckInstructionSet() {
  try {
    models::InstructionSet();
    return absl::OkStatus();
  } catch (const std::invalid_argument& error) {
    return absl::InvalidArgumentError(error.what());
  }
}

absl::Status LogInstructionSet() {
  if (absl::Status known = CheckInstructionSet(); !known.ok()) return known;
  const char* const limit = std::getenv(kernels::kCpuIsaVariable);
  const bool is_limited = limit != nullptr && *limit != '\0';
  Log(LogLevel::kInfo, "instruction set of the CPU",
      {{"used", models::InstructionSet()}, {"limit", is_limited ? std::string(limit) : std::string("none")}});
  return absl::OkStatus();
}

}  // namespace saccade::server
