// What a model says about itself before it is run: what goes in, what comes out.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/options.h"
#include "models/placement.h"

namespace saccade::models {

// kTensors: whatever a program gives, which knows nothing of pictures (models/programs).
enum class Task { kClassification, kDetection, kSegmentation, kStereo, kActions, kRestoration, kTensors };

// "classification", "detection", "segmentation", "stereo", "actions", "restoration", "tensors".
const char* TaskName(Task task);

struct Description {
  std::string architecture;
  Task task = Task::kClassification;
  ImageInput input;
  // Of a detector, with the background, which is class 0. 0 for tasks without classes.
  int64_t classes = 0;
  std::vector<std::string> labels;  // empty, or one per class
  Options options;                  // every option of the architecture, defaults filled in
  // Layers whose attention can be looked at (models/attention_probe.h), in the order in which they are
  // computed.
  std::vector<std::string> attention_layers;
  // Whether their maps are of chosen positions (ExplanationWish::positions).
  bool attention_by_position = false;
  int64_t parameters = 0;  // all learned parameters, biases and batch norms included
  // What loading found that its owner should know, one sentence each: they belong in the log.
  std::vector<std::string> notes;
};

}  // namespace saccade::models
