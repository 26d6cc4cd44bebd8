// EA-PSMNets for the tests.
#pragma once

#include <memory>

#include "models/model.h"

namespace saccade::models::testing {

// With random weights, those of the options `trained`, whose batch norms keep the signal's size. The weights
// go through a file, as they do in service.
std::unique_ptr<Model> MakePsmnet(const Options& options, const Options& trained);
inline std::unique_ptr<Model> MakePsmnet(const Options& options) { return MakePsmnet(options, options); }

}  // namespace saccade::models::testing
