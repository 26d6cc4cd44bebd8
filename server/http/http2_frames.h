// The frames of one HTTP/2 connection, which nghttp2 reads and writes.
#pragma once

#include <nghttp2/nghttp2.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "absl/strings/string_view.h"
#include "server/http/http_headers.h"
#include "server/http/http_limits.h"

namespace saccade::server {

// The functions that nghttp2 calls, see server/http/http2_callbacks.h.
struct Http2CallbackTable {
  nghttp2_session_callbacks* session = nullptr;
  nghttp2_data_source_read_callback read_body = nullptr;
};

// The session of nghttp2. Loop's thread only. Frames that are submitted are written by the next Send(), or by
// the one that is running. Functions that submit throw std::bad_alloc if nghttp2 has no memory; the
// connection must then be ended.
class Http2Frames {
 public:
  // `receiver` is passed to the callbacks. Both must outlive this object.
  Http2Frames(const Http2CallbackTable* callbacks, void* receiver, const HttpLimits& limits);

  // Reads the client's bytes and calls the receiver for each frame. Returns 0, or an error of nghttp2 after
  // which nothing more can be read.
  int Receive(std::string_view bytes);
  // Makes the receiver send the frames that are due, as far as it can. Returns 0, or an error of nghttp2
  // after which nothing more can be sent.
  int Send();
  // Whether Receive() or Send() is running.
  bool is_running() const { return is_running_; }
  // True if nothing is left to be read or written.
  bool IsOver() const;

  void SubmitSettings(const HttpLimits& limits);
  void SubmitPing();
  // The response's head, followed by the receiver's ReadBody() if it has a body.
  void SubmitHead(int32_t stream, int status, const HttpHeaders& headers, bool has_body);
  // Continues with a body of which ReadBody() had nothing to send.
  void ResumeBody(int32_t stream);
  // Call it in ReadBody() alone. Returns 0, or an error of nghttp2.
  int SubmitTrailers(int32_t stream, const HttpHeaders& trailers);
  void SubmitReset(int32_t stream, uint32_t code);
  // Lets the client send `bytes` more on the stream.
  void SubmitWindow(int32_t stream, uint64_t bytes);
  // Lets the client send `bytes` more on the connection.
  void GiveBackWindow(size_t bytes);
  // Announces that new streams will soon be ignored.
  void AnnounceEnd();
  // New streams are ignored from now on.
  void EndNewStreams();
  // Ends the connection with an error, or NGHTTP2_NO_ERROR.
  void Terminate(uint32_t code);

  // How many bytes the client's windows allow to be sent on the stream.
  int64_t SendWindow(int32_t stream) const;

 private:
  struct Deleter {
    void operator()(nghttp2_session* session) const { nghttp2_session_del(session); }
  };

  const Http2CallbackTable& callbacks_;
  std::unique_ptr<nghttp2_session, Deleter> session_;
  bool is_running_ = false;
};

}  // namespace saccade::server
