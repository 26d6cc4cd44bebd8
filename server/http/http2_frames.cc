#include "server/http/http2_frames.h"

#include <algorithm>
#include <iterator>
#include <new>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"

namespace saccade::server {
namespace {

// The connection's window. Streams are bounded one by one, so this one only bounds what an old client may
// have on its way.
constexpr int32_t kConnectionWindow = 16 << 20;
// Larger than the default: fewer frames for large messages.
constexpr uint32_t kMaxFrameBytes = 64 << 10;
constexpr size_t kMaxSettings = 32;
// Answers to PING and SETTINGS that may wait to be written.
constexpr size_t kMaxAcks = 100;
constexpr size_t kMaxDynamicTableBytes = 4096;

struct OptionDeleter {
  void operator()(nghttp2_option* option) const { nghttp2_option_del(option); }
};

// The fields of a head, of which few have more. nghttp2 copies them.
using FieldList = absl::InlinedVector<nghttp2_nv, 12>;

void Add(absl::string_view name, absl::string_view value, FieldList& fields) {
  fields.push_back({reinterpret_cast<uint8_t*>(const_cast<char*>(name.data())),
                    reinterpret_cast<uint8_t*>(const_cast<char*>(value.data())), name.size(), value.size(),
                    NGHTTP2_NV_FLAG_NONE});
}

void Add(const HttpHeaders& headers, FieldList& fields) {
  for (const auto& [name, value] : headers) Add(name, value, fields);
}

// Throws if nghttp2 had no memory. Its other errors concern streams that have ended meanwhile.
void CheckMemory(int result) {
  if (result == NGHTTP2_ERR_NOMEM) throw std::bad_alloc();
}

}  // namespace

Http2Frames::Http2Frames(const Http2CallbackTable* callbacks, void* receiver, const HttpLimits& limits)
    : callbacks_(*callbacks) {
  nghttp2_option* made = nullptr;
  if (nghttp2_option_new(&made) != 0) throw std::bad_alloc();
  const std::unique_ptr<nghttp2_option, OptionDeleter> option(made);
  nghttp2_option_set_no_auto_window_update(made, 1);
  nghttp2_option_set_max_outbound_ack(made, kMaxAcks);
  nghttp2_option_set_max_settings(made, kMaxSettings);
  nghttp2_option_set_max_continuations(made, static_cast<size_t>(limits.max_continuations));
  nghttp2_option_set_server_fallback_rfc7540_priorities(made, 0);
  nghttp2_option_set_no_closed_streams(made, 1);
  nghttp2_option_set_max_deflate_dynamic_table_size(made, kMaxDynamicTableBytes);
  nghttp2_session* session = nullptr;
  if (nghttp2_session_server_new2(&session, callbacks_.session, receiver, made) != 0) throw std::bad_alloc();
  session_.reset(session);
}

int Http2Frames::Receive(std::string_view bytes) {
  is_running_ = true;
  const ssize_t read =
      nghttp2_session_mem_recv(session_.get(), reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
  is_running_ = false;
  return read < 0 ? static_cast<int>(read) : 0;
}

int Http2Frames::Send() {
  is_running_ = true;
  const int failed = nghttp2_session_send(session_.get());
  is_running_ = false;
  return failed;
}

bool Http2Frames::IsOver() const {
  return nghttp2_session_want_read(session_.get()) == 0 && nghttp2_session_want_write(session_.get()) == 0;
}

void Http2Frames::SubmitSettings(const HttpLimits& limits) {
  const nghttp2_settings_entry settings[] = {
      {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, static_cast<uint32_t>(limits.max_streams)},
      {NGHTTP2_SETTINGS_MAX_FRAME_SIZE, kMaxFrameBytes},
      {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, static_cast<uint32_t>(limits.max_head_bytes)},
  };
  CheckMemory(nghttp2_submit_settings(session_.get(), NGHTTP2_FLAG_NONE, settings, std::size(settings)));
  CheckMemory(nghttp2_session_set_local_window_size(session_.get(), NGHTTP2_FLAG_NONE, 0, kConnectionWindow));
}

void Http2Frames::SubmitPing() {
  CheckMemory(nghttp2_submit_ping(session_.get(), NGHTTP2_FLAG_NONE, nullptr));
}

void Http2Frames::SubmitHead(int32_t stream, int status, const HttpHeaders& headers, bool has_body) {
  const absl::AlphaNum digits(status);
  FieldList fields;
  Add(":status", digits.Piece(), fields);
  Add(headers, fields);
  nghttp2_data_provider body{};
  body.source.fd = stream;
  body.read_callback = callbacks_.read_body;
  CheckMemory(nghttp2_submit_response(session_.get(), stream, fields.data(), fields.size(),
                                      has_body ? &body : nullptr));
}

void Http2Frames::ResumeBody(int32_t stream) {
  CheckMemory(nghttp2_session_resume_data(session_.get(), stream));
}

int Http2Frames::SubmitTrailers(int32_t stream, const HttpHeaders& trailers) {
  FieldList fields;
  Add(trailers, fields);
  return nghttp2_submit_trailer(session_.get(), stream, fields.data(), fields.size());
}

void Http2Frames::SubmitReset(int32_t stream, uint32_t code) {
  CheckMemory(nghttp2_submit_rst_stream(session_.get(), NGHTTP2_FLAG_NONE, stream, code));
}

void Http2Frames::SubmitWindow(int32_t stream, uint64_t bytes) {
  constexpr uint64_t kMaxIncrement = (uint64_t{1} << 31) - 1 - (64 << 10);
  CheckMemory(nghttp2_submit_window_update(session_.get(), NGHTTP2_FLAG_NONE, stream,
                                           static_cast<int32_t>(std::min(bytes, kMaxIncrement))));
}

void Http2Frames::GiveBackWindow(size_t bytes) {
  CheckMemory(nghttp2_session_consume_connection(session_.get(), bytes));
}

void Http2Frames::AnnounceEnd() { CheckMemory(nghttp2_submit_shutdown_notice(session_.get())); }

void Http2Frames::EndNewStreams() {
  CheckMemory(nghttp2_submit_goaway(session_.get(), NGHTTP2_FLAG_NONE,
                                    nghttp2_session_get_last_proc_stream_id(session_.get()), NGHTTP2_NO_ERROR,
                                    nullptr, 0));
}

void Http2Frames::Terminate(uint32_t code) {
  CheckMemory(nghttp2_session_terminate_session(session_.get(), code));
}

int64_t Http2Frames::SendWindow(int32_t stream) const {
  return std::min(nghttp2_session_get_stream_remote_window_size(session_.get(), stream),
                  nghttp2_session_get_remote_window_size(session_.get()));
}

}  // namespace saccade::server
