#include "server/tracing/call_record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <utility>

#include "server/core/fake_clock.h"
#include "server/tracing/attribute_names.h"
#include "server/tracing/call_watch.h"

namespace saccade::server {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr char kParent[] = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
constexpr char kUnsampledParent[] = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00";

std::vector<std::string> NamesOf(const std::vector<Span>& spans) {
  std::vector<std::string> names;
  for (const Span& span : spans) names.push_back(span.name);
  return names;
}

std::map<std::string_view, std::variant<std::string, int64_t>> AttributesOf(const Span& span) {
  std::map<std::string_view, std::variant<std::string, int64_t>> attributes;
  for (const Attribute& one : span.attributes) attributes[one.name] = one.value;
  return attributes;
}

// Collects exported spans and logged calls.
class CallRecordTest : public ::testing::Test {
 protected:
  CallRecordTest() {
    exporter_ = std::make_unique<SpanExporter>(
        SpanExporter::Options{.send =
                                  [this](const std::vector<Span>& spans, absl::Duration, const auto&) {
                                    sent_.insert(sent_.end(), spans.begin(), spans.end());
                                    return SendOutcome();
                                  },
                              .count = [](SpanFate, int64_t) {},
                              .warn = [](const std::string&) {}},
        &clock_);
  }

  CallWatch Traces(Sampler sampler = {}) { return CallWatch({&clock_, exporter_.get(), sampler}); }
  CallWatch Lines() {
    return CallWatch({&clock_, nullptr, {}, [this](const CallFacts& call) { reported_.push_back(call); }});
  }

  std::shared_ptr<CallRecord> Begin(const CallWatch& watch,
                                    const std::vector<absl::string_view>& traceparents = {}) {
    return watch.Begin(traceparents, {"vendor=1"}, [this]() -> CallOrigin {
      ++origins_;
      return {.method = "saccade.v1.Vision/Predict",
              .client = "ipv6:[::1]",
              .request_id = "of the header",
              .arrival = clock_.Now()};
    });
  }

  // All exported spans. No further spans are accepted afterwards.
  const std::vector<Span>& Sent() {
    exporter_->Stop(absl::Seconds(1));
    return sent_;
  }

  PassFacts Pass(absl::Duration takes, int64_t batch_size) {
    const absl::Time started = clock_.Now();
    clock_.Advance(takes);
    return {.started = started, .ended = clock_.Now(), .batch_size = batch_size, .requests = 2};
  }

  FakeClock clock_;
  // Used by the exporter's thread until it has stopped.
  std::vector<Span> sent_;
  std::unique_ptr<SpanExporter> exporter_;
  std::vector<CallFacts> reported_;
  int origins_ = 0;
};

TEST_F(CallRecordTest, ThereIsNoneIfNobodyWantsToKnow) {
  EXPECT_EQ(Begin(CallWatch({&clock_})), nullptr);
  EXPECT_EQ(Begin(Traces({.share = 0})), nullptr);
  EXPECT_EQ(Begin(Traces(), {kUnsampledParent}), nullptr);
  EXPECT_EQ(origins_, 0);
}

TEST_F(CallRecordTest, NamesThatClientsSendAreShortened) {
  const CallWatch spans = Traces();
  const CallWatch lines = Lines();
  for (const CallWatch* watch : {&spans, &lines}) {
    auto record = Begin(*watch, {kParent});
    CallHead head;
    head.model = std::string(1 << 20, 'm');
    head.id = std::string(1 << 20, 'i');
    record->Describe(head);
    record->End({});
  }
  ASSERT_EQ(reported_.size(), 1u);
  EXPECT_EQ(reported_[0].model, std::string(128, 'm'));
  EXPECT_EQ(reported_[0].request_id, std::string(128, 'i'));
  const std::vector<Span>& sent = Sent();
  ASSERT_EQ(sent.size(), 1u);
  const auto attributes = AttributesOf(sent[0]);
  EXPECT_EQ(std::get<std::string>(attributes.at(attribute::kModelName)), std::string(128, 'm'));
  EXPECT_EQ(std::get<std::string>(attributes.at(attribute::kRequestId)), std::string(128, 'i'));
}

TEST_F(CallRecordTest, StagesFollowEachOtherWithinTheCall) {
  const CallWatch watch = Traces();
  auto record = Begin(watch, {kParent});
  CallHead head;
  head.model = "eyes";
  head.id = "of the message";
  record->Describe(head);
  record->SetVersion(3);
  record->AddReceived(100);
  clock_.Advance(absl::Milliseconds(1));
  record->Prepared(clock_.Now(), /*decoded=*/true);
  clock_.Advance(absl::Milliseconds(2));
  CallRecord::AddPass({record.get()}, Pass(absl::Milliseconds(4), 5));
  clock_.Advance(absl::Milliseconds(8));
  record->End({.status = absl::OkStatus(), .bytes = 200});

  const std::vector<Span>& sent = Sent();
  ASSERT_THAT(NamesOf(sent),
              ElementsAre("batch", "saccade.v1.Vision/Predict", "decode", "queue", "compute", "encode"));
  const Span& batch = sent[0];
  const Span& call = sent[1];
  EXPECT_EQ(ToHex(call.trace), "0af7651916cd43dd8448eb211c80319c");
  EXPECT_EQ(ToHex(call.parent), "b7ad6b7169203331");
  EXPECT_TRUE(call.parent_is_remote);
  EXPECT_EQ(call.state, "vendor=1");
  EXPECT_EQ(call.ended - call.started, absl::Milliseconds(15));
  absl::Time at = call.started;
  for (size_t i = 2; i < sent.size(); ++i) {
    EXPECT_EQ(sent[i].trace, call.trace);
    EXPECT_EQ(sent[i].parent, call.id);
    EXPECT_EQ(sent[i].started, at);
    at = sent[i].ended;
  }
  EXPECT_EQ(at, call.ended);
  EXPECT_EQ(sent[2].ended - sent[2].started, absl::Milliseconds(1));
  EXPECT_EQ(sent[3].ended - sent[3].started, absl::Milliseconds(2));
  EXPECT_EQ(sent[4].ended - sent[4].started, absl::Milliseconds(4));

  const auto attributes = AttributesOf(call);
  EXPECT_EQ(std::get<std::string>(attributes.at(attribute::kModelName)), "eyes");
  EXPECT_EQ(std::get<int64_t>(attributes.at(attribute::kModelVersion)), 3);
  EXPECT_EQ(std::get<std::string>(attributes.at(attribute::kRequestId)), "of the message");
  EXPECT_EQ(std::get<std::string>(attributes.at(attribute::kClientAddress)), "::1");
  EXPECT_EQ(std::get<std::string>(attributes.at(attribute::kRpcStatus)), "OK");
  EXPECT_EQ(std::get<int64_t>(attributes.at(attribute::kRequestBytes)), 100);
  EXPECT_EQ(std::get<int64_t>(attributes.at(attribute::kResponseBytes)), 200);

  EXPECT_FALSE(batch.trace == call.trace);
  ASSERT_EQ(batch.links.size(), 1U);
  EXPECT_EQ(batch.links[0].trace, call.trace);
  EXPECT_EQ(batch.links[0].span, sent[4].id);
  ASSERT_EQ(sent[4].links.size(), 1U);
  EXPECT_EQ(sent[4].links[0].trace, batch.trace);
  EXPECT_EQ(sent[4].links[0].span, batch.id);
}

TEST_F(CallRecordTest, ABatchLinksAllOfItsMembersUpToABound) {
  const CallWatch watch = Traces();
  std::vector<std::shared_ptr<CallRecord>> calls;
  std::vector<CallRecord*> members;
  for (size_t i = 0; i < Span::kMaxLinks + 2; ++i) {
    calls.push_back(Begin(watch));
    members.push_back(calls.back().get());
  }
  CallRecord::AddPass(members, Pass(absl::Milliseconds(1), 200));
  for (const auto& call : calls) call->End({});
  const Span& batch = Sent()[0];
  EXPECT_EQ(batch.name, "batch");
  EXPECT_EQ(batch.links.size(), Span::kMaxLinks);
  EXPECT_EQ(batch.links_left_out, 2U);
  EXPECT_EQ(std::get<int64_t>(AttributesOf(batch).at(attribute::kBatchSize)), 200);
}

TEST_F(CallRecordTest, OnlyWhatTheServerGotWrongIsAnError) {
  const CallWatch watch = Traces();
  Begin(watch)->End({.status = absl::InvalidArgumentError("theirs")});
  Begin(watch)->End({.status = absl::InternalError("ours")});
  Begin(watch)->End({.status = absl::ResourceExhaustedError("http"), .http_status = 429});
  Begin(watch);
  const std::vector<Span>& sent = Sent();
  ASSERT_EQ(sent.size(), 4U);
  EXPECT_FALSE(sent[0].failed);
  EXPECT_EQ(std::get<std::string>(AttributesOf(sent[0]).at(attribute::kErrorType)), "INVALID_ARGUMENT");
  EXPECT_TRUE(sent[1].failed);
  EXPECT_EQ(sent[1].message, "ours");
  EXPECT_FALSE(sent[2].failed);
  EXPECT_EQ(std::get<int64_t>(AttributesOf(sent[2]).at(attribute::kHttpStatus)), 429);
  // The call that was not ended.
  EXPECT_TRUE(sent[3].failed);
}

TEST_F(CallRecordTest, AStepIsToldWithinItsCall) {
  const CallWatch watch = Traces();
  auto record = Begin(watch);
  auto step = record->Step(clock_.Now());
  CallRecord::AddPass({step.get()}, Pass(absl::Milliseconds(1), 1));
  step->End({});
  record->End({});
  const std::vector<Span>& sent = Sent();
  ASSERT_THAT(NamesOf(sent), ElementsAre("batch", "step", "saccade.v1.Vision/Predict"));
  EXPECT_EQ(sent[1].parent, sent[2].id);
  EXPECT_EQ(sent[1].trace, sent[2].trace);
  EXPECT_EQ(sent[1].kind, Span::Kind::kInternal);
}

TEST_F(CallRecordTest, FactsAreOfTheWholeCall) {
  const CallWatch watch = Lines();
  auto record = Begin(watch, {kUnsampledParent});
  ASSERT_NE(record, nullptr);
  for (int i = 0; i < 2; ++i) {
    auto step = record->Step(clock_.Now());
    step->Prepared(clock_.Now(), /*decoded=*/false);
    clock_.Advance(absl::Milliseconds(1));
    CallRecord::AddPass({step.get()}, Pass(absl::Milliseconds(3), i + 1));
    step->End({});
  }
  EXPECT_THAT(reported_, IsEmpty());
  record->End({.status = absl::OkStatus()});
  ASSERT_EQ(reported_.size(), 1U);
  EXPECT_EQ(reported_[0].queue, absl::Milliseconds(2));
  EXPECT_EQ(reported_[0].compute, absl::Milliseconds(6));
  EXPECT_EQ(reported_[0].total, absl::Milliseconds(8));
  EXPECT_EQ(reported_[0].batch_size, 2);
  EXPECT_EQ(reported_[0].request_id, "of the header");
  EXPECT_EQ(ToHex(reported_[0].trace), "0af7651916cd43dd8448eb211c80319c");
  EXPECT_THAT(Sent(), IsEmpty());
}

}  // namespace
}  // namespace saccade::server
