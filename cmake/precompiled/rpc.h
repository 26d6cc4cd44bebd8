// Precompiled for code that uses gRPC: cmake/precompiled/base.h, and the generated messages and services.
#pragma once

#include <grpcpp/grpcpp.h>

#include "cmake/precompiled/base.h"
#include "inference/grpc_service.grpc.pb.h"
#include "inference/model_config.pb.h"
#include "saccade/v1/vision.grpc.pb.h"
