#include "models/api/description.h"

namespace saccade::models {

const char* TaskName(Task task) {
  switch (task) {
    case Task::kDetection:
      return "detection";
    case Task::kSegmentation:
      return "segmentation";
    case Task::kStereo:
      return "stereo";
    case Task::kActions:
      return "actions";
    case Task::kRestoration:
      return "restoration";
    case Task::kDepth:
      return "depth";
    case Task::kEmbedding:
      return "embedding";
    case Task::kTensors:
      return "tensors";
    case Task::kClassification:
      break;
  }
  return "classification";
}

}  // namespace saccade::models
