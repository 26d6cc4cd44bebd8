// Precompiled for the tests of targets that use cmake/precompiled/torch.h.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ATen/ops/rand.h>
#include <ATen/ops/randn.h>

#include "cmake/precompiled/torch.h"
