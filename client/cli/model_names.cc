#include "client/cli/model_names.h"

namespace saccade::client {

std::string StateName(ModelState state) {
  switch (state) {
    case ModelState::kLoading:
      return "loading";
    case ModelState::kReady:
      return "ready";
    case ModelState::kUnavailable:
      return "unavailable";
    case ModelState::kUnknown:
      break;
  }
  return "unknown";
}

std::string HealthName(Health health) {
  switch (health) {
    case Health::kServing:
      return "serving";
    case Health::kNotServing:
      return "not serving";
    case Health::kUnknown:
      break;
  }
  return "unknown";
}

}  // namespace saccade::client
