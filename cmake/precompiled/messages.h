// Precompiled for code that uses the protocols' messages: cmake/precompiled/base.h, and the generated
// messages.
#pragma once

#include "cmake/precompiled/base.h"
#include "inference/grpc_service.pb.h"
#include "inference/model_config.pb.h"
#include "saccade/v1/vision.pb.h"
