// Precompiled for the tests of targets that use cmake/precompiled/messages.h.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cmake/precompiled/messages.h"
