#include "server/ensembles/ensemble_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <new>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "server/core/bad_field.h"
#include "server/core/fake_clock.h"
#include "server/core/inline_passes.h"
#include "server/core/shed_reason.h"
#include "server/core/wrong_values.h"
#include "server/engine/answer_charge.h"
#include "server/ensembles/testing/ensembles.h"

namespace saccade::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

Tensor Text(const std::string& name, const std::string& text) {
  auto owner = std::make_shared<const std::string>(text);
  Tensor tensor{
      .name = name, .type = DataType::kUint8, .shape = {static_cast<int64_t>(text.size())}, .data = {}};
  tensor.data = BytePieces(*owner, owner);
  return tensor;
}

std::string TextOf(const Tensor& tensor) {
  std::string text(tensor.data.size(), ' ');
  tensor.data.CopyTo(text.data());
  return text;
}

// A step that has started and waits until the test ends it.
struct Started {
  TensorCall call;
  TensorDone done;
  // What its thread might have computed then.
  InlinePasses passes;
};

class EnsembleRunTest : public ::testing::Test {
 protected:
  void Start(const ModelSettings& settings, std::vector<Tensor> inputs,
             std::vector<std::string> wanted = {}) {
    plan_ = MakePlan(settings);
    TensorCall call;
    call.model = std::string("e");
    call.client = std::string("c");
    call.id = std::string("7");
    call.priority = -2;
    call.deadline = clock_.Now() + absl::Seconds(9);
    call.timeout = absl::Seconds(3);
    call.cancellation = client_;
    call.protocol = "oip";
    call.inputs = std::move(inputs);
    for (const std::string& name : wanted) call.outputs.push_back({.name = name});
    EnsembleRun::Start(
        {.plan = &plan_,
         .infer =
             [this](TensorCall step, TensorDone done) {
               started_.push_back({std::move(step), std::move(done), LimitInlinePasses::Current()});
             },
         .clock = &clock_},
        std::move(call), [this](absl::StatusOr<TensorAnswer> answer) {
          ++answers_;
          answer_ = std::move(answer);
        });
  }

  std::vector<std::string> Running() const {
    std::vector<std::string> models;
    for (const Started& started : started_) models.push_back(started.call.model);
    return models;
  }

  Started TakeStarted(const std::string& model) {
    const auto of_model = [&model](const Started& one) { return one.call.model == model; };
    const auto found = std::find_if(started_.begin(), started_.end(), of_model);
    EXPECT_NE(found, started_.end()) << model;
    Started started = std::move(*found);
    started_.erase(found);
    return started;
  }

  // Each output is text that tells what it was computed from: "m(a,b)".
  static TensorAnswer Compute(const TensorCall& call) {
    std::string made = absl::StrCat(call.model, "(");
    for (const Tensor& input : call.inputs)
      absl::StrAppend(&made, &input == &call.inputs[0] ? "" : ",", TextOf(input));
    TensorAnswer answer{.model = call.model, .version = 1, .outputs = {}};
    for (const WantedOutput& output : call.outputs)
      answer.outputs.push_back(Text(output.name, absl::StrCat(made, ").", output.name)));
    answer.timings = {.queue = absl::Milliseconds(1), .infer = absl::Milliseconds(10)};
    return answer;
  }

  void Answer(const std::string& model) {
    Started started = TakeStarted(model);
    TensorAnswer answer = Compute(started.call);
    // A model releases its inputs before it answers.
    started.call = {};
    std::move(started.done)(std::move(answer));
  }
  void Fail(const std::string& model, absl::Status why) {
    std::move(TakeStarted(model).done)(std::move(why));
  }

  std::string Output(size_t index) const { return TextOf(answer_->outputs.at(index)); }

  FakeClock clock_;
  EnsemblePlan plan_;
  std::shared_ptr<Cancellation> client_ = std::make_shared<Cancellation>();
  int answers_ = 0;
  absl::StatusOr<TensorAnswer> answer_;
  // Destroyed first: steps that are still there fail their run, which answers.
  std::vector<Started> started_;
};

ModelSettings Chain() {
  return EnsembleOf(
      {Spec("in")}, {Spec("out")},
      {Step("a", {{"x", "in"}}, {{"y", "middle"}}), Step("b", {{"x", "middle"}}, {{"y", "out"}})});
}

ModelSettings Diamond() {
  return EnsembleOf({Spec("in")}, {Spec("out"), Spec("side")},
                    {Step("top", {{"x", "in"}}, {{"y", "both"}}), Step("left", {{"x", "both"}}, {{"y", "l"}}),
                     Step("right", {{"x", "both"}}, {{"y", "r"}, {"z", "side"}}),
                     Step("join", {{"a", "l"}, {"b", "r"}}, {{"y", "out"}})});
}

TEST_F(EnsembleRunTest, OneStepAfterTheOther) {
  Start(Chain(), {Text("in", "1")});
  EXPECT_THAT(Running(), ElementsAre("a"));
  EXPECT_EQ(started_[0].call.inputs.at(0).name, "x");
  EXPECT_EQ(started_[0].call.outputs.at(0).name, "y");
  Answer("a");
  EXPECT_THAT(Running(), ElementsAre("b"));
  EXPECT_EQ(answers_, 0);
  Answer("b");
  ASSERT_EQ(answers_, 1);
  ASSERT_TRUE(answer_.ok()) << answer_.status();
  EXPECT_EQ(answer_->outputs.at(0).name, "out");
  EXPECT_EQ(Output(0), "b(a(1).y).y");
  EXPECT_EQ(answer_->timings.infer, absl::Milliseconds(20));
  EXPECT_EQ(answer_->timings.queue, absl::Milliseconds(2));
}

TEST_F(EnsembleRunTest, AStepIsAskedAsTheEnsembleWas) {
  Start(Chain(), {Text("in", "1")});
  const TensorCall& step = started_.at(0).call;
  EXPECT_EQ(step.client, "c");
  EXPECT_EQ(step.id, "7");
  EXPECT_EQ(step.priority, -2);
  EXPECT_EQ(step.deadline, clock_.Now() + absl::Seconds(9));
  EXPECT_EQ(step.timeout, absl::Seconds(3));
  EXPECT_EQ(step.arrival, clock_.Now());
  EXPECT_EQ(step.protocol, "oip");
  EXPECT_TRUE(step.nested);
  client_->Cancel();
  EXPECT_TRUE(step.cancellation->cancelled());
  Answer("a");
  Answer("b");
}

TEST_F(EnsembleRunTest, WhatDoesNotWaitForEachOtherRunsTogether) {
  Start(Diamond(), {Text("in", "1")});
  Answer("top");
  EXPECT_THAT(Running(), UnorderedElementsAre("left", "right"));
  Answer("right");
  EXPECT_THAT(Running(), ElementsAre("left"));
  Answer("left");
  EXPECT_THAT(Running(), ElementsAre("join"));
  Answer("join");
  ASSERT_TRUE(answer_.ok()) << answer_.status();
  EXPECT_EQ(Output(0), "join(left(top(1).y).y,right(top(1).y).y).y");
  EXPECT_EQ(Output(1), "right(top(1).y).z");
}

TEST_F(EnsembleRunTest, AStepIsNotComputedByTheThreadThatHasOthersToStart) {
  Start(Diamond(), {Text("in", "1")});
  EXPECT_EQ(started_.at(0).passes, InlinePasses::kOwn);
  Answer("top");
  ASSERT_EQ(started_.size(), 2u);
  EXPECT_EQ(started_[0].passes, InlinePasses::kNone);
  EXPECT_EQ(started_[1].passes, InlinePasses::kOwn) << "no other step waits for the thread";
  Answer("left");
  Answer("right");
  EXPECT_EQ(started_.at(0).passes, InlinePasses::kOwn);
  Answer("join");
  EXPECT_EQ(LimitInlinePasses::Current(), InlinePasses::kAny);
}

TEST_F(EnsembleRunTest, WhatNobodyWantsIsNotComputed) {
  Start(Diamond(), {Text("in", "1")}, {"side"});
  Answer("top");
  EXPECT_THAT(Running(), ElementsAre("right"));
  EXPECT_EQ(started_[0].call.outputs.size(), 1u);
  EXPECT_EQ(started_[0].call.outputs[0].name, "z");
  Answer("right");
  ASSERT_EQ(answers_, 1);
  ASSERT_EQ(answer_->outputs.size(), 1u);
  EXPECT_EQ(answer_->outputs[0].name, "side");
}

TEST_F(EnsembleRunTest, TensorsAreNotCopied) {
  Tensor input = Text("in", "1");
  const char* const sent = input.data.pieces()[0].data();
  Start(Diamond(), {std::move(input)});
  EXPECT_EQ(started_.at(0).call.inputs[0].data.pieces()[0].data(), sent);
  Started top = TakeStarted("top");
  TensorAnswer answer = Compute(top.call);
  const char* const made = answer.outputs[0].data.pieces()[0].data();
  std::move(top.done)(std::move(answer));
  for (const Started& started : started_) EXPECT_EQ(started.call.inputs[0].data.pieces()[0].data(), made);
  for (const char* model : {"left", "right", "join"}) Answer(model);
}

TEST_F(EnsembleRunTest, TensorsAreLetGoWithTheirLastTaker) {
  // A tensor that holds the only reference to its data.
  const auto watched = [](const std::string& name, std::weak_ptr<const std::string>& watch) {
    const auto owner = std::make_shared<const std::string>(name);
    watch = owner;
    Tensor tensor = Text(name, "");
    tensor.data = BytePieces(*owner, owner);
    return tensor;
  };
  std::weak_ptr<const std::string> sent;
  std::weak_ptr<const std::string> made;
  Start(Diamond(), {watched("in", sent)});
  {
    Started top = TakeStarted("top");
    TensorAnswer answer;
    answer.outputs.push_back(watched("y", made));
    std::move(top.done)(std::move(answer));
    EXPECT_FALSE(sent.expired()) << "the step has it";
  }
  EXPECT_TRUE(sent.expired());
  Answer("left");
  EXPECT_FALSE(made.expired()) << "the right one has it";
  Answer("right");
  EXPECT_TRUE(made.expired());
  Answer("join");
  EXPECT_EQ(answers_, 1);
}

TEST_F(EnsembleRunTest, TheAnswerHoldsTheChargesOfItsTensors) {
  Start(Chain(), {Text("in", "1")});
  std::weak_ptr<const AnswerCharge> charges[2];
  for (int i = 0; i < 2; ++i) {
    Started step = TakeStarted(i == 0 ? "a" : "b");
    TensorAnswer answer = Compute(step.call);
    const auto charge = std::make_shared<const AnswerCharge>(Admission::Ticket());
    charges[i] = charge;
    answer.charge = charge;
    std::move(step.done)(std::move(answer));
  }
  ASSERT_TRUE(answer_.ok()) << answer_.status();
  EXPECT_TRUE(charges[0].expired()) << "nobody has its tensor";
  EXPECT_FALSE(charges[1].expired());
  answer_ = absl::InternalError("sent");
  EXPECT_TRUE(charges[1].expired());
}

TEST_F(EnsembleRunTest, AFailureCancelsTheRestAndNamesItsStep) {
  Start(Diamond(), {Text("in", "1")});
  Answer("top");
  const auto left = started_.at(0).call.cancellation;
  const auto right = started_.at(1).call.cancellation;
  absl::Status why = absl::ResourceExhaustedError("no room");
  SetShedReason(why, ShedReason::kModelBound);
  SetBadField(why, "input 'image'");
  Fail("left", why);
  EXPECT_TRUE(right->cancelled());
  EXPECT_FALSE(client_->cancelled()) << "it is the client's to raise";
  EXPECT_EQ(answers_, 0) << "a step still runs, and may look at the request";
  Fail("right", absl::CancelledError("as told"));
  EXPECT_THAT(Running(), IsEmpty());
  ASSERT_EQ(answers_, 1);
  EXPECT_EQ(answer_.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(answer_.status().message(), "step of model 'left' that makes 'l': no room");
  EXPECT_EQ(StatedShedReason(answer_.status()), ShedReason::kModelBound);
  EXPECT_FALSE(BadFieldOf(answer_.status()).has_value()) << "the client has sent no such field";
}

TEST_F(EnsembleRunTest, ValuesAreTheClientsFaultOnlyIfItSentThem) {
  absl::Status why = absl::InvalidArgumentError("not finite");
  SetWrongValues(why);
  Start(Chain(), {Text("in", "1")});
  Fail("a", why);
  EXPECT_EQ(answer_.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(HasWrongValues(answer_.status())) << "for an ensemble that this one is a step of";

  Start(Chain(), {Text("in", "1")});
  Answer("a");
  Fail("b", why);
  EXPECT_EQ(answer_.status().code(), absl::StatusCode::kInternal);
  EXPECT_EQ(answer_.status().message(), "step of model 'b' that makes 'out': not finite");

  Start(Chain(), {Text("in", "1")});
  Answer("a");
  Fail("b", absl::InvalidArgumentError("the shape is [1]"));
  EXPECT_EQ(answer_.status().code(), absl::StatusCode::kInvalidArgument) << "not about values";
}

TEST_F(EnsembleRunTest, WhatEndsWellAfterAFailureChangesNothing) {
  Start(Diamond(), {Text("in", "1")});
  Answer("top");
  Fail("right", absl::InternalError("broken"));
  Answer("left");
  EXPECT_THAT(Running(), IsEmpty());
  ASSERT_EQ(answers_, 1);
  EXPECT_EQ(answer_.status().code(), absl::StatusCode::kInternal);
}

TEST_F(EnsembleRunTest, AStepsCancellationIsItsOwn) {
  Start(Diamond(), {Text("in", "1")});
  Answer("top");
  // A call whose shares failed does the same.
  started_.at(0).call.cancellation->Cancel();
  EXPECT_FALSE(started_.at(1).call.cancellation->cancelled());
  Fail("left", absl::InternalError("broken"));
  Fail("right", absl::CancelledError("as told"));
  EXPECT_EQ(answer_.status().code(), absl::StatusCode::kInternal);
}

TEST_F(EnsembleRunTest, AModelThatHasGoneIsNotTheClientsMistake) {
  Start(Chain(), {Text("in", "1")});
  Fail("a", absl::NotFoundError("no model 'a'"));
  EXPECT_EQ(answer_.status().code(), absl::StatusCode::kUnavailable);
}

TEST_F(EnsembleRunTest, AModelThatForgetsAnOutputFails) {
  Start(Chain(), {Text("in", "1")});
  std::move(TakeStarted("a").done)(TensorAnswer{});
  EXPECT_EQ(answer_.status().code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(answer_.status().message()), HasSubstr("did not answer with its output 'y'"));
}

TEST_F(EnsembleRunTest, WhatMayBeLeftOutIs) {
  ModelSettings settings = EnsembleOf({Spec("in"), Spec("more")}, {Spec("out")},
                                      {Step("a", {{"x", "in"}, {"z", "more"}}, {{"y", "out"}})});
  settings.inputs[1].optional = true;
  Start(settings, {Text("in", "1")});
  ASSERT_EQ(started_.at(0).call.inputs.size(), 1u);
  EXPECT_EQ(started_[0].call.inputs[0].name, "x");
  Answer("a");
  EXPECT_TRUE(answer_.ok()) << answer_.status();
}

TEST_F(EnsembleRunTest, OneTensorForSeveralInputs) {
  Start(EnsembleOf({Spec("in")}, {Spec("out")}, {Step("a", {{"x", "in"}, {"z", "in"}}, {{"y", "out"}})}),
        {Text("in", "1")});
  Answer("a");
  ASSERT_TRUE(answer_.ok()) << answer_.status();
  EXPECT_EQ(Output(0), "a(1,1).y");
}

TEST_F(EnsembleRunTest, AnOutputMayBeAStepsInputToo) {
  ModelSettings settings = Chain();
  settings.outputs.push_back(Spec("middle"));
  Start(settings, {Text("in", "1")});
  Answer("a");
  Answer("b");
  ASSERT_TRUE(answer_.ok()) << answer_.status();
  EXPECT_EQ(Output(0), "b(a(1).y).y");
  EXPECT_EQ(Output(1), "a(1).y");
}

// Steps that end before `infer` returns.
TEST(EnsembleRun, ALongChainOfShortStepsFillsNoStack) {
  constexpr int kSteps = 64;
  std::vector<EnsembleStep> steps;
  for (int i = 0; i < kSteps; ++i)
    steps.push_back(Step("m", {{"x", absl::StrCat("t", i)}}, {{"y", absl::StrCat("t", i + 1)}}));
  const EnsemblePlan plan = MakePlan(EnsembleOf({Spec("t0")}, {Spec(absl::StrCat("t", kSteps))}, steps));
  int depth = 0;
  int deepest = 0;
  bool answered = false;
  TensorCall call;
  call.inputs.push_back(Text("t0", ""));
  EnsembleRun::Start({.plan = &plan,
                      .infer =
                          [&](TensorCall step, TensorDone done) {
                            deepest = std::max(deepest, ++depth);
                            TensorAnswer answer;
                            answer.outputs.push_back(Text("y", TextOf(step.inputs.at(0)) + "."));
                            std::move(done)(std::move(answer));
                            --depth;
                          },
                      .clock = Clock::Real()},
                     std::move(call), [&](absl::StatusOr<TensorAnswer> answer) {
                       ASSERT_TRUE(answer.ok()) << answer.status();
                       EXPECT_EQ(TextOf(answer->outputs.at(0)), std::string(kSteps, '.'));
                       answered = true;
                     });
  EXPECT_TRUE(answered);
  EXPECT_EQ(deepest, 1);
}

// The last of the ready steps is computed by the thread that starts it, and takes long.
TEST(EnsembleRun, NoStepWaitsForAnotherOnesPass) {
  const EnsemblePlan plan = MakePlan(EnsembleOf(
      {Spec("in")}, {Spec("out"), Spec("other")},
      {Step("first", {{"x", "in"}}, {{"y", "middle"}}), Step("slow", {{"x", "in"}}, {{"y", "other"}}),
       Step("after", {{"x", "middle"}}, {{"y", "out"}})}));
  absl::Notification slow_began;
  absl::Notification after_began;
  std::thread first;
  const auto answer = [](const TensorCall& step, TensorDone done) {
    TensorAnswer made;
    made.outputs.push_back(Text("y", TextOf(step.inputs.at(0))));
    std::move(done)(std::move(made));
  };
  bool waited_for = false;
  const auto infer = [&](TensorCall step, TensorDone done) {
    if (step.model == "first") {
      first = std::thread([&, step = std::move(step), done = std::move(done)]() mutable {
        slow_began.WaitForNotification();
        answer(step, std::move(done));
      });
      return;
    }
    if (step.model == "after") {
      after_began.Notify();
    } else {
      slow_began.Notify();
      waited_for = !after_began.WaitForNotificationWithTimeout(absl::Seconds(10));
    }
    answer(step, std::move(done));
  };
  TensorCall call;
  call.inputs.push_back(Text("in", "1"));
  absl::Notification answered;
  EnsembleRun::Start({.plan = &plan, .infer = infer, .clock = Clock::Real()}, std::move(call),
                     [&](absl::StatusOr<TensorAnswer> outcome) {
                       EXPECT_TRUE(outcome.ok()) << outcome.status();
                       answered.Notify();
                     });
  answered.WaitForNotification();
  first.join();
  EXPECT_FALSE(waited_for) << "a step whose inputs were there waited for the pass of another one";
}

TEST(EnsembleRun, AStepThatCannotBeStartedFailsTheRun) {
  const EnsemblePlan plan = MakePlan(
      EnsembleOf({Spec("in")}, {Spec("out")},
                 {Step("good", {{"x", "in"}}, {{"y", "l"}}), Step("broken", {{"x", "in"}}, {{"y", "r"}}),
                  Step("join", {{"a", "l"}, {"b", "r"}}, {{"y", "out"}})}));
  std::optional<Started> good;
  const auto infer = [&](TensorCall step, TensorDone done) {
    if (step.model == "broken") throw std::bad_alloc();
    good = Started{std::move(step), std::move(done), LimitInlinePasses::Current()};
  };
  TensorCall call;
  call.inputs.push_back(Text("in", "1"));
  std::vector<absl::Status> answers;
  EnsembleRun::Start(
      {.plan = &plan, .infer = infer, .clock = Clock::Real()}, std::move(call),
      [&](const absl::StatusOr<TensorAnswer>& outcome) { answers.push_back(outcome.status()); });
  ASSERT_TRUE(good);
  EXPECT_TRUE(good->call.cancellation->cancelled());
  EXPECT_THAT(answers, IsEmpty()) << "a step still runs";
  std::move(good->done)(absl::CancelledError("cancelled"));
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(answers[0].code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(answers[0].message()), HasSubstr("'broken'"));
}

TEST_F(EnsembleRunTest, AStepThatItsModelForgetsFailsTheRun) {
  Start(Diamond(), {Text("in", "1")});
  Answer("top");
  TakeStarted("left");
  EXPECT_TRUE(started_.at(0).call.cancellation->cancelled());
  EXPECT_EQ(answers_, 0) << "a step still runs";
  Answer("right");
  EXPECT_EQ(answers_, 1);
  EXPECT_EQ(answer_.status().code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(answer_.status().message()), HasSubstr("'left'"));
}

TEST(EnsembleRun, AStepThatThrowsAfterItsAnswerHasAnswered) {
  const EnsemblePlan plan = MakePlan(Chain());
  const auto infer = [](const TensorCall& step, TensorDone done) {
    TensorAnswer answer;
    answer.outputs.push_back(Text("y", TextOf(step.inputs.at(0)) + "."));
    std::move(done)(std::move(answer));
    throw std::bad_alloc();
  };
  TensorCall call;
  call.inputs.push_back(Text("in", ""));
  int answers = 0;
  EnsembleRun::Start({.plan = &plan, .infer = infer, .clock = Clock::Real()}, std::move(call),
                     [&](absl::StatusOr<TensorAnswer> outcome) {
                       ASSERT_TRUE(outcome.ok()) << outcome.status();
                       EXPECT_EQ(TextOf(outcome->outputs.at(0)), "..");
                       ++answers;
                     });
  EXPECT_EQ(answers, 1);
}

TEST(EnsembleRun, StepsEndOnManyThreads) {
  constexpr int kWide = 8;
  std::vector<EnsembleStep> steps;
  Names joined;
  for (int i = 0; i < kWide; ++i) {
    steps.push_back(Step("wide", {{"x", "in"}}, {{"y", absl::StrCat("t", i)}}));
    joined[absl::StrCat("x", i)] = absl::StrCat("t", i);
  }
  steps.push_back(Step("join", joined, {{"y", "out"}}));
  const EnsemblePlan plan = MakePlan(EnsembleOf({Spec("in")}, {Spec("out")}, steps));
  for (int round = 0; round < 500; ++round) {
    const bool fails = round % 5 == 0;
    std::vector<std::thread> threads;
    absl::Mutex mutex;
    absl::Notification answered;
    const auto infer = [&](TensorCall step, TensorDone done) {
      absl::MutexLock lock(&mutex);
      threads.emplace_back([fails, step = std::move(step), done = std::move(done)]() mutable {
        if (fails && step.model == "join") return std::move(done)(absl::InternalError("broken"));
        TensorAnswer answer;
        answer.outputs.push_back(Text("y", TextOf(step.inputs.at(0))));
        std::move(done)(std::move(answer));
      });
    };
    TensorCall call;
    call.inputs.push_back(Text("in", "1"));
    EnsembleRun::Start({.plan = &plan, .infer = infer, .clock = Clock::Real()}, std::move(call),
                       [&](absl::StatusOr<TensorAnswer> answer) {
                         EXPECT_EQ(answer.ok(), !fails) << answer.status();
                         answered.Notify();
                       });
    answered.WaitForNotification();
    std::vector<std::thread> ended;
    {
      absl::MutexLock lock(&mutex);
      ended.swap(threads);
    }
    EXPECT_EQ(ended.size(), kWide + 1u);
    for (std::thread& thread : ended) thread.join();
  }
}

}  // namespace
}  // namespace saccade::server
