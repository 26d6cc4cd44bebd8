// What the daemon's flags permit models to do. Both are off by default.
#pragma once

namespace saccade::server {

struct ModelPermissions {
  // --allow-executable-models: run code from the model repository (TorchScript, AOTInductor).
  bool executable = false;
  // --allow-drills: fail, hang or report a lost GPU on purpose when a request's values ask for it.
  bool drills = false;
};

}  // namespace saccade::server
