#include "server/protocols/message_bytes.h"

#include <gtest/gtest.h>

#include <string>

#include "inference/grpc_service.pb.h"
#include "server/admission/admission.h"
#include "server/grpc/testing/pieces.h"

namespace saccade::server {
namespace {

using testing::InPieces;
using testing::Repeated;

TEST(ParseMessageTest, WhatParsingTakesIsCharged) {
  const auto admission = *Admission::Create({}, Clock::Real());
  const auto charged = [&admission] { return admission->inflight().bytes; };
  const std::string bytes = Repeated(std::string("\x2a\x00", 2), 10000);
  inference::ModelInferRequest message;
  {
    const auto charge = ParseMessage(InPieces(bytes, 1000), &message, admission.get(), "ipv4:10.0.0.7");
    ASSERT_TRUE(charge.ok());
    EXPECT_EQ(message.inputs_size(), 10000);
    EXPECT_GE(charged() + 2 * static_cast<int64_t>(bytes.size()),
              static_cast<int64_t>(message.SpaceUsedLong()));
  }
  EXPECT_EQ(charged(), 0);
  inference::ModelInferRequest ordinary;
  ordinary.set_id(std::string(1000, 'x'));
  inference::ModelInferRequest parsed;
  const auto charge = ParseMessage(InPieces(ordinary, 1000), &parsed, admission.get(), "ipv4:10.0.0.7");
  ASSERT_TRUE(charge.ok());
  EXPECT_EQ(charged(), 0) << "it takes about its own size";
}

TEST(ParseMessageTest, ARefusedChargeIsNotParsed) {
  const auto admission =
      *Admission::Create({.max_inflight_bytes = 1 << 20, .max_message_bytes = 1000}, Clock::Real());
  inference::ModelInferRequest message;
  const auto charge = ParseMessage(InPieces(Repeated(std::string("\x2a\x00", 2), 10000), 1000), &message,
                                   admission.get(), "ipv4:10.0.0.7");
  EXPECT_FALSE(charge.ok());
  EXPECT_EQ(message.inputs_size(), 0);
}

}  // namespace
}  // namespace saccade::server
