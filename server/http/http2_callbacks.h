// nghttp2's callbacks as member functions of a class.
#pragma once

#include <nghttp2/nghttp2.h>

#include <cstdint>
#include <exception>
#include <new>
#include <string_view>

#include "server/http/http2_frames.h"

namespace saccade::server {

// Runs a callback of nghttp2, through which no exception may pass.
template <typename Receiver, typename Action>
ssize_t RunCallback(void* self, Action action) {
  auto& receiver = *static_cast<Receiver*>(self);
  try {
    return action(receiver);
  } catch (const std::exception&) {
    receiver.OnException();
    return NGHTTP2_ERR_CALLBACK_FAILURE;
  }
}

inline std::string_view TextOf(const uint8_t* bytes, size_t size) {
  return {reinterpret_cast<const char*>(bytes), size};
}

template <typename Receiver>
Http2CallbackTable MakeHttp2Callbacks() {
  Http2CallbackTable table;
  if (nghttp2_session_callbacks_new(&table.session) != 0) throw std::bad_alloc();
  nghttp2_session_callbacks* const session = table.session;
  nghttp2_session_callbacks_set_on_begin_frame_callback(
      session, [](nghttp2_session*, const nghttp2_frame_hd* frame, void* self) -> int {
        return RunCallback<Receiver>(self, [&](Receiver& receiver) { return receiver.BeginFrame(*frame); });
      });
  nghttp2_session_callbacks_set_on_begin_headers_callback(
      session, [](nghttp2_session*, const nghttp2_frame* frame, void* self) -> int {
        return RunCallback<Receiver>(self, [&](Receiver& receiver) { return receiver.BeginHead(*frame); });
      });
  nghttp2_session_callbacks_set_on_header_callback(
      session,
      [](nghttp2_session*, const nghttp2_frame* frame, const uint8_t* name, size_t name_size,
         const uint8_t* value, size_t value_size, uint8_t, void* self) -> int {
        return RunCallback<Receiver>(self, [&](Receiver& receiver) {
          return receiver.TakeField(*frame, TextOf(name, name_size), TextOf(value, value_size));
        });
      });
  nghttp2_session_callbacks_set_on_frame_recv_callback(
      session, [](nghttp2_session*, const nghttp2_frame* frame, void* self) -> int {
        return RunCallback<Receiver>(self, [&](Receiver& receiver) { return receiver.TakeFrame(*frame); });
      });
  nghttp2_session_callbacks_set_on_invalid_frame_recv_callback(
      session, [](nghttp2_session*, const nghttp2_frame* frame, int, void* self) -> int {
        return RunCallback<Receiver>(self,
                                     [&](Receiver& receiver) { return receiver.TakeInvalidFrame(*frame); });
      });
  // Without this, nghttp2 drops a field with a forbidden byte without telling, and goes on to read others
  // like it.
  nghttp2_session_callbacks_set_on_invalid_header_callback(
      session,
      [](nghttp2_session*, const nghttp2_frame*, const uint8_t*, size_t, const uint8_t*, size_t, uint8_t,
         void*) -> int { return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE; });
  nghttp2_session_callbacks_set_on_data_chunk_recv_callback(
      session,
      [](nghttp2_session*, uint8_t, int32_t id, const uint8_t* bytes, size_t size, void* self) -> int {
        return RunCallback<Receiver>(
            self, [&](Receiver& receiver) { return receiver.TakeData(id, TextOf(bytes, size)); });
      });
  nghttp2_session_callbacks_set_on_stream_close_callback(
      session, [](nghttp2_session*, int32_t id, uint32_t code, void* self) -> int {
        return RunCallback<Receiver>(self,
                                     [&](Receiver& receiver) { return receiver.CloseStream(id, code); });
      });
  nghttp2_session_callbacks_set_on_frame_send_callback(
      session, [](nghttp2_session*, const nghttp2_frame* frame, void* self) -> int {
        return RunCallback<Receiver>(self, [&](Receiver& receiver) { return receiver.SentFrame(*frame); });
      });
  nghttp2_session_callbacks_set_send_callback(
      session, [](nghttp2_session*, const uint8_t* bytes, size_t size, int, void* self) {
        return RunCallback<Receiver>(self, [&](Receiver& receiver) -> ssize_t {
          const int failed = receiver.SendFrame(TextOf(bytes, size));
          return failed != 0 ? failed : static_cast<ssize_t>(size);
        });
      });
  nghttp2_session_callbacks_set_send_data_callback(
      session,
      [](nghttp2_session*, nghttp2_frame*, const uint8_t* head, size_t size, nghttp2_data_source* source,
         void* self) -> int {
        constexpr size_t kFrameHeadBytes = 9;
        return RunCallback<Receiver>(self, [&](Receiver& receiver) {
          return receiver.SendData(source->fd, TextOf(head, kFrameHeadBytes), size);
        });
      });
  table.read_body = [](nghttp2_session*, int32_t id, uint8_t*, size_t max, uint32_t* flags,
                       nghttp2_data_source*, void* self) {
    return RunCallback<Receiver>(self, [&](Receiver& receiver) { return receiver.ReadBody(id, max, flags); });
  };
  return table;
}

// The callbacks for Http2Frames whose receiver is a Receiver. It needs these functions, which return 0 or an
// error of nghttp2:
//   int BeginFrame(const nghttp2_frame_hd&)              a frame's head was read
//   int BeginHead(const nghttp2_frame&)                  fields of a HEADERS frame follow
//   int TakeField(const nghttp2_frame&, std::string_view name, std::string_view value)
//   int TakeFrame(const nghttp2_frame&)                  a frame was read; HEADERS with all its fields
//   int TakeInvalidFrame(const nghttp2_frame&)           a frame was read that must not be sent like this
//   int TakeData(int32_t id, std::string_view bytes)     bytes of a body
//   int CloseStream(int32_t id, uint32_t code)
//   int SentFrame(const nghttp2_frame&)
//   ssize_t ReadBody(int32_t id, size_t max, uint32_t* flags)
//       how many bytes of the response's body to send next, at most `max`; never copies them
//   int SendFrame(std::string_view bytes)
//       writes a frame; NGHTTP2_ERR_WOULDBLOCK if there is no room, as SendData()
//   int SendData(int32_t id, std::string_view frame_head, size_t size)
//       writes a DATA frame with the next `size` bytes of the body
//   void OnException()                                   one of these functions has thrown
// The table lives as long as the program.
template <typename Receiver>
const Http2CallbackTable* Http2CallbacksOf() {
  static const Http2CallbackTable table = MakeHttp2Callbacks<Receiver>();
  return &table;
}

}  // namespace saccade::server
