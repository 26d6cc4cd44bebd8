// Precompiled for the tests of targets that use cmake/precompiled/rpc.h.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cmake/precompiled/rpc.h"
