#include "models/described/picture_program.h"

#include <algorithm>

namespace saccade::models {

const char* NameOf(Role role) {
  switch (role) {
    case Role::kLogits:
      return "logits";
    case Role::kBoxes:
      return "boxes";
    case Role::kScores:
      return "scores";
    case Role::kLabels:
      return "labels";
    case Role::kMasks:
      return "masks";
    case Role::kCoefficients:
      return "coefficients";
    case Role::kPrototypes:
      return "prototypes";
    case Role::kGrid:
      return "grid";
    case Role::kDepth:
      return "depth";
    case Role::kEmbedding:
      break;
  }
  return "embedding";
}

Task TaskOf(HeadKind kind) {
  switch (kind) {
    case HeadKind::kClasses:
      return Task::kClassification;
    case HeadKind::kSets:
    case HeadKind::kBoxes:
    case HeadKind::kGrid:
      return Task::kDetection;
    case HeadKind::kSemantic:
      return Task::kSegmentation;
    case HeadKind::kDepth:
      return Task::kDepth;
    case HeadKind::kEmbedding:
      break;
  }
  return Task::kEmbedding;
}

std::optional<size_t> OutputOf(const PictureProgram& program, Role role) {
  const auto found = std::find(program.roles.begin(), program.roles.end(), role);
  if (found == program.roles.end()) return std::nullopt;
  return static_cast<size_t>(found - program.roles.begin());
}

Signature SignatureOf(const PictureProgram& program) {
  Signature signature{
      .inputs = {program.pictures}, .outputs = program.outputs, .batched = true, .may_split = true};
  if (program.mask) signature.inputs.push_back(*program.mask);
  return signature;
}

}  // namespace saccade::models
