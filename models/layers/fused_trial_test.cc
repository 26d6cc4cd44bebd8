#include "models/layers/fused_trial.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/convolution.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <stdexcept>

namespace saccade::models {
namespace {

using ::testing::HasSubstr;

// A convolution with ReLU on the CPU, and a clock that its calls put forward.
class FusedTrialTest : public ::testing::Test {
 protected:
  at::Tensor Convolved(const at::Tensor& x, const at::Tensor& other) const {
    const at::Tensor y =
        at::convolution(x, weight_.to(x.scalar_type()), {}, {1, 1}, {1, 1}, {1, 1}, false, {0, 0}, 1);
    return other.defined() ? y.add(other) : y;
  }

  // Takes `fused_seconds_` for a call, and `first_seconds_` more for the first one.
  FusedTrial Trial(const MapFunction& fused) {
    return {.plain =
                [this](const at::Tensor& x, const at::Tensor& other) {
                  seconds_ += 1e-3;
                  return Convolved(x, other).clamp_min(0);
                },
            .fused =
                [this, fused](const at::Tensor& x, const at::Tensor& other) {
                  seconds_ += fused_seconds_ + first_seconds_;
                  first_seconds_ = 0;
                  return fused(x, other);
                },
            .now = [this] { return seconds_; },
            .tolerance = FusedTolerance(Precision::kFloat32)};
  }

  FusedTrial Same() {
    return Trial(
        [this](const at::Tensor& x, const at::Tensor& other) { return Convolved(x, other).clamp_min(0); });
  }

  double seconds_ = 100;
  double fused_seconds_ = 0.5e-3;
  double first_seconds_ = 0;
  at::Tensor weight_ = at::randn({6, 4, 3, 3});
  at::Tensor x_ = at::randn({2, 4, 9, 7}).contiguous(at::MemoryFormat::ChannelsLast);
  at::Tensor other_ = at::randn({2, 6, 9, 7}).contiguous(at::MemoryFormat::ChannelsLast);
};

TEST_F(FusedTrialTest, TheSameInLessTimeIsChosen) {
  const at::Tensor kept = x_.clone();
  for (const at::Tensor& other : {at::Tensor(), other_}) {
    const FusedVerdict verdict = Same().Run(x_, other);
    EXPECT_TRUE(verdict.fused) << verdict.reason;
    EXPECT_EQ(verdict.reason, "");
  }
  EXPECT_TRUE(x_.equal(kept));
}

// On a GPU that generator may belong to another model's recording.
TEST_F(FusedTrialTest, NothingIsDrawnFromTheDevicesGenerator) {
  const at::Tensor before = at::detail::getDefaultCPUGenerator().get_state().clone();
  EXPECT_TRUE(Same().Run(x_, other_).fused);
  EXPECT_TRUE(at::detail::getDefaultCPUGenerator().get_state().equal(before));
}

TEST_F(FusedTrialTest, MapsLargerThanWhatIsDrawnAreCompared) {
  const at::Tensor large = at::randn({1, 4, 200, 150}).contiguous(at::MemoryFormat::ChannelsLast);
  const FusedVerdict verdict = Same().Run(large, {});
  EXPECT_TRUE(verdict.fused) << verdict.reason;
}

TEST_F(FusedTrialTest, LittleGainChoosesThePlainFunctions) {
  for (const double seconds : {0.96e-3, 1e-3, 2e-3}) {
    fused_seconds_ = seconds;
    const FusedVerdict verdict = Same().Run(x_, {});
    EXPECT_FALSE(verdict.fused) << seconds;
    EXPECT_THAT(verdict.reason, HasSubstr("of the plain one's time"));
  }
}

TEST_F(FusedTrialTest, AFirstCallThatTakesLongIsAReasonAgainstIt) {
  first_seconds_ = 2;
  EXPECT_THAT(Same().Run(x_, {}).reason, HasSubstr("first call"));
  first_seconds_ = 0.05;
  EXPECT_TRUE(Same().Run(x_, {}).fused);
}

TEST_F(FusedTrialTest, AnotherResultIsNotChosen) {
  const auto reason = [&](const MapFunction& change) {
    const FusedVerdict verdict = Trial([this, change](const at::Tensor& x, const at::Tensor& other) {
                                   return change(Convolved(x, other).clamp_min(0), other);
                                 }).Run(x_, other_);
    EXPECT_FALSE(verdict.fused);
    return verdict.reason;
  };
  EXPECT_THAT(reason([](const at::Tensor& y, const at::Tensor& /*other*/) { return y.mul(1.001); }),
              HasSubstr("is off by"));
  EXPECT_THAT(reason([](const at::Tensor& y, const at::Tensor& other) { return y.sub(other); }),
              HasSubstr("is off by"));
  // As if it read memory that nobody wrote.
  EXPECT_THAT(reason([](const at::Tensor& y, const at::Tensor& /*other*/) {
                at::Tensor bad = y.clone();
                bad[0][0][0][0] = std::numeric_limits<float>::quiet_NaN();
                return bad;
              }),
              HasSubstr("nan"));
  EXPECT_THAT(reason([](const at::Tensor& y, const at::Tensor& /*other*/) { return y.contiguous(); }),
              HasSubstr("layout"));
  EXPECT_THAT(reason([](const at::Tensor& y, const at::Tensor& /*other*/) { return y.narrow(0, 0, 1); }),
              HasSubstr("shape"));
  EXPECT_THAT(reason([](const at::Tensor& y, const at::Tensor& /*other*/) { return y.to(at::kDouble); }),
              HasSubstr("type"));
}

// Such a ReLU makes a finite answer of one that should be a failure.
TEST_F(FusedTrialTest, NanHasToStayNan) {
  const auto swallows = [this](const at::Tensor& x, const at::Tensor& other) {
    const at::Tensor y = Convolved(x, other);
    return at::where(y.gt(0), y, at::zeros_like(y));
  };
  EXPECT_THAT(Trial(swallows).Run(x_, {}).reason, HasSubstr("NaN"));
}

TEST_F(FusedTrialTest, AnExceptionChoosesThePlainFunctions) {
  const auto throws = [](const at::Tensor& /*x*/, const at::Tensor& /*other*/) -> at::Tensor {
    throw std::runtime_error("GET was unable to find an engine to execute this computation");
  };
  const FusedVerdict verdict = Trial(throws).Run(x_, {});
  EXPECT_FALSE(verdict.fused);
  EXPECT_TRUE(verdict.threw);
  EXPECT_THAT(verdict.reason, HasSubstr("unable to find an engine"));
}

// The plain functions round between the convolution, the sum and the ReLU, a fused one does not.
TEST_F(FusedTrialTest, RoundingOnceIsWithinTheTolerance) {
  const auto rounded_once = [this](const at::Tensor& x, const at::Tensor& other) {
    return Convolved(x.to(at::kFloat), other.to(at::kFloat)).clamp_min(0).to(x.scalar_type());
  };
  weight_ = weight_.to(at::kBFloat16).to(at::kFloat);
  FusedTrial trial = Trial(rounded_once);
  trial.tolerance = FusedTolerance(Precision::kBFloat16);
  const FusedVerdict verdict = trial.Run(x_.to(at::kBFloat16), other_.to(at::kBFloat16));
  EXPECT_TRUE(verdict.fused) << verdict.reason;
}

TEST(FusedChoice, IsMadeOnce) {
  FusedChoice choice;
  int runs = 0;
  const auto run = [&] {
    ++runs;
    return FusedVerdict{.fused = runs == 1, .reason = ""};
  };
  EXPECT_TRUE(choice.Get(run).fused);
  EXPECT_TRUE(choice.Get(run).fused);
  EXPECT_EQ(runs, 1);
}

TEST(FusedChoice, AnExceptionIsNoVerdictUntilItComesAgain) {
  int runs = 0;
  const auto throws_first = [&] {
    ++runs;
    return FusedVerdict{.fused = runs > 1, .reason = "", .threw = runs == 1};
  };
  FusedChoice choice;
  EXPECT_FALSE(choice.Get(throws_first).fused);
  EXPECT_TRUE(choice.Get(throws_first).fused);
  EXPECT_TRUE(choice.Get(throws_first).fused);
  EXPECT_EQ(runs, 2);

  int thrown = 0;
  const auto throws = [&] {
    ++thrown;
    return FusedVerdict{.fused = false, .reason = "no engine", .threw = true};
  };
  FusedChoice never;
  for (int call = 0; call < 5; ++call) EXPECT_FALSE(never.Get(throws).fused);
  EXPECT_EQ(thrown, FusedChoice::kMaxTrials);
}

}  // namespace
}  // namespace saccade::models
