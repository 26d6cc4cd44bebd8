#include "models/described/picture_program.h"

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

Signature SignatureOf(const PictureProgram& program) {
  Signature signature{.inputs = {program.pictures}, .outputs = program.outputs, .batched = true};
  if (program.mask) signature.inputs.push_back(*program.mask);
  return signature;
}

}  // namespace saccade::models
