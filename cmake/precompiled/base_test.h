// Precompiled for the tests of what cmake/precompiled/base.h is for.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cmake/precompiled/base.h"
