// One fixture for the tests that run an operator's CUDA kernels, compiled by g++, in the emulator.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

#include "kernels/common/long_form.h"
#include "kernels/common/testing/below_tensors.h"
#include "kernels/device/launch.cuh"
#include "kernels/device/testing/far_maps.h"

namespace saccade::kernels {

// The largest allowed relative distance from the formulas in float64.
template <typename T>
inline constexpr double kMaxEmulatedError = std::is_same_v<T, float>        ? 1e-6
                                            : std::is_same_v<T, DeviceHalf> ? 2e-3
                                                                            : 1e-2;

// Runs one problem. Kernels says how:
//   Fits(problem)                       true if the kernels support the problem
//   Floats(problem)                     the size of the workspace
//   Run<T>(problem, workspace, launch)  launches the kernels
// The workspace holds NaN at first, so that a value which is read before it is written changes the result.
template <typename Kernels, typename T, typename Problem>
void RunEmulated(const Problem& problem, uint64_t seed) {
  ASSERT_TRUE(Kernels::Fits(problem));
  std::vector<float> workspace(static_cast<size_t>(Kernels::Floats(problem)),
                               std::numeric_limits<float>::quiet_NaN());
  Kernels::template Run<T>(problem, workspace.data(), EmulatedLaunch{seed});
}

// Kernels has besides these: Config, the parameter of the tests, and Case<T>(config, seed), one problem with
// Problem(); Error(), the distance of its result from the formulas; out(), its result; and SameResult(other)
// if comparing the bits of out() is not enough.
template <typename Kernels>
class EmulatedTest : public testing::TestWithParam<typename Kernels::Config> {
 protected:
  template <typename T>
  using Case = typename Kernels::template Case<T>;

  template <typename T>
  static void Run(Case<T>& test, uint64_t seed = 1) {
    RunEmulated<Kernels, T>(test.Problem(), seed);
  }

  template <typename T>
  void MatchesTheFormulas() const {
    Case<T> test(this->GetParam(), 1);
    Run(test);
    EXPECT_LE(test.Error(), kMaxEmulatedError<T>);
  }

  // A missing barrier makes the result depend on the order in which threads run.
  template <typename T>
  void DoesNotDependOnTheOrderOfThreads() const {
    if (kHasAddressSanitizer) GTEST_SKIP() << "MatchesTheFormulas uses the same addresses, in half the time";
    Case<T> first(this->GetParam(), 4);
    Run(first, 1);
    Case<T> again(this->GetParam(), 4);
    Run(again, 2);
    if constexpr (requires { first.SameResult(again); }) {
      EXPECT_TRUE(first.SameResult(again));
    } else {
      EXPECT_TRUE(SameBits(first.out(), again.out()));
    }
  }
};

// Runs a problem, then again with its maps moved apart, and compares the bits of the results.
// move(maps, problem) moves the maps of a problem. Skips the test if there are no addresses for them.
template <typename Kernels, typename T, typename Problem, typename Move>
void FarMapsGiveTheSameBits(const Problem& near, const Move& move) {
  RunEmulated<Kernels, T>(near, 1);
  Problem far = near;
  FarMaps<T> maps(near.batch);
  move(maps, far);
  if (!maps.error().empty()) GTEST_SKIP() << maps.error();
  RunEmulated<Kernels, T>(far, 1);
  EXPECT_EQ(maps.Differences(), 0);
}

// The same for a problem whose result is dense, and stays in `out`.
template <typename Kernels, typename T, typename Problem, typename Move>
void FarMapsGiveTheSameDenseBits(Problem p, std::vector<T>& out, const Move& move) {
  RunEmulated<Kernels, T>(p, 1);
  const std::vector<T> expected = out;
  out.assign(expected.size(), T(std::numeric_limits<float>::quiet_NaN()));
  FarMaps<T> maps(p.batch);
  move(maps, p);
  if (!maps.error().empty()) GTEST_SKIP() << maps.error();
  RunEmulated<Kernels, T>(p, 1);
  EXPECT_TRUE(SameBits(out, expected));
}

// Returns a third of the configurations, for checks that do not depend on the kind of problem: fibres are
// slow.
template <typename Config>
std::vector<Config> EveryThird(const std::vector<Config>& all) {
  std::vector<Config> some;
  for (size_t i = 0; i < all.size(); i += 3) some.push_back(all[i]);
  return some;
}

// Returns all configurations in the long form of a test, and a third of them otherwise: for checks whose code
// another type of maps has checked with all of them.
template <typename Config>
std::vector<Config> EveryThirdUnlessLong(const std::vector<Config>& all) {
  return IsLongForm() ? all : EveryThird(all);
}

}  // namespace saccade::kernels
