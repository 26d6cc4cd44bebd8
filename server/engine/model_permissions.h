// What the daemon's flags permit models to do, and require of their files.
#pragma once

#include "server/repository/checksums.h"

namespace saccade::server {

struct ModelPermissions {
  // --allow-executable-models: run code from the model repository (TorchScript, AOTInductor).
  bool executable = false;
  // --allow-drills: fail, hang or report a lost GPU on purpose when a request's values ask for it.
  bool drills = false;
  // --signing-key and --require-signed.
  ChecksumRules checksums = {};
};

}  // namespace saccade::server
