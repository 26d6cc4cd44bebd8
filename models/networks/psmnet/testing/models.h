// EA-PSMNets for tests.
#pragma once

#include <memory>

#include "models/api/model.h"

namespace saccade::models::testing {

// Makes a model with random weights for the options `trained`, whose batch norms keep the signal's size. The
// weights are saved to a file and loaded, as when serving.
std::unique_ptr<Model> MakePsmnet(const Options& options, const Options& trained);
inline std::unique_ptr<Model> MakePsmnet(const Options& options) { return MakePsmnet(options, options); }

}  // namespace saccade::models::testing
