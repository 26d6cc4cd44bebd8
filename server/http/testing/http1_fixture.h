// An HTTP/1.1 session without a socket, for tests.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "server/http/http1_session.h"
#include "server/http/testing/refusal_counts.h"
#include "server/http/testing/script_handler.h"
#include "server/http/testing/test_service.h"

namespace saccade::server {

class Http1SessionTest : public ::testing::Test {
 protected:
  // A new connection, in place of an earlier one.
  void Connect() {
    pipe_ = std::make_unique<SessionPipe>(&loop_);
    pipe_->Open(MakeHttp1Session(pipe_.get(), &handler_, &limits_, &refusals_));
  }

  // Every request is answered when it is complete.
  void AnswerAll() {
    handler_.on_body_end = [](ScriptHandler::Seen& seen) { seen.Answer(seen.head.path + " " + seen.body); };
  }

  std::string Ask(const std::string& request) {
    pipe_->Send(request);
    return pipe_->TakeOutput();
  }

  ManualLoop loop_;
  HttpLimits limits_;
  ScriptHandler handler_;
  RefusalCounts refusals_;
  std::unique_ptr<SessionPipe> pipe_;
};

// A request with a body in chunks.
inline std::string Chunked(const std::string& path, const std::string& chunks) {
  return absl::StrCat("POST ", path, " HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n", chunks);
}

}  // namespace saccade::server
