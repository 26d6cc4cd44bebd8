// Operators of torchvision for programs that were exported with them.
#pragma once

namespace saccade::models {

// Makes torchvision::nms and torchvision::roi_align known to programs that are loaded afterwards.
// Thread-safe; the first call registers them. Throws c10::Error if the process has loaded torchvision's own.
void RegisterTorchvisionOperators();

}  // namespace saccade::models
