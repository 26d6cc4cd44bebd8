#include "client/cli/output/names.h"

#include "absl/strings/str_cat.h"

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

std::string StateName(Promotion::State state) {
  switch (state) {
    case Promotion::State::kMeasuring:
      return "measuring";
    case Promotion::State::kPromoted:
      return "promoted";
    case Promotion::State::kRefused:
      return "refused";
    case Promotion::State::kUnknown:
      break;
  }
  return "unknown";
}

std::string TextOf(const Promotion& promotion) {
  return absl::StrCat("shadow version ", promotion.shadow, " ", StateName(promotion.state), ": ",
                      promotion.reason);
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

std::string NameOf(VoxelType type) {
  return type == VoxelType::kUint8 ? "uint8" : type == VoxelType::kUint16 ? "uint16" : "float32";
}

std::string NameOf(const VolumeShape& shape) {
  return absl::StrCat(shape.depth, "x", shape.height, "x", shape.width, " ", NameOf(shape.type));
}

}  // namespace saccade::client
