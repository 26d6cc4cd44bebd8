// Precompiled for the tests of what cmake/precompiled/torch.h is for.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ATen/ops/rand.h>
#include <ATen/ops/randn.h>

#include "cmake/precompiled/torch.h"
