// Describes a model before it is run: its inputs and outputs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/api/options.h"
#include "models/api/placement.h"

namespace saccade::models {

// kDepth: one picture; the result is a Disparity, whose values are the network's. kTensors: an exported
// program with arbitrary named tensors (models/programs).
enum class Task {
  kClassification,
  kDetection,
  kSegmentation,
  kStereo,
  kActions,
  kRestoration,
  kDepth,
  kEmbedding,
  kTensors
};

// Returns "classification", "detection", "segmentation", "stereo", "actions", "restoration", "depth",
// "embedding" or "tensors".
const char* TaskName(Task task);

struct Description {
  std::string architecture;
  Task task = Task::kClassification;
  ImageInput input;
  // Number of classes; 0 for tasks without classes. The classes of Mask R-CNN and R-C3D include the
  // background, which is class 0; those of a described detector do if its saccade.json says so.
  int64_t classes = 0;
  std::vector<std::string> labels;  // empty, or one per class
  Options options;                  // every option of the architecture, defaults filled in
  // Layers whose attention maps can be requested (models/api/attention_probe.h), in order of execution.
  std::vector<std::string> attention_layers;
  // Whether those maps are made for chosen positions (ExplanationWish::positions).
  bool attention_by_position = false;
  int64_t parameters = 0;  // all learned parameters, biases and batch norms included
  // Names of the options that are set and make requests fail on purpose, to test how a client or an operator
  // handles failures. Empty for networks.
  std::vector<std::string> drills;
  // Findings at load that the model's owner should know, one sentence each, to be logged.
  std::vector<std::string> notes;
};

}  // namespace saccade::models
