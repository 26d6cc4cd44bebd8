// A client of one Saccade daemon, or of all replicas behind one name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "client/cpp/statistics.h"
#include "client/cpp/stream.h"
#include "client/cpp/types.h"

namespace saccade::client {

// How the client authenticates the daemon, and itself to the daemon. Certificates and keys are the contents
// of PEM files.
struct TlsOptions {
  // The authorities trusted to sign the daemon's certificate; empty trusts this machine's authorities.
  std::string authorities = "";
  // The client's own certificate and key, for a daemon that requires one (mTLS). Set both or neither; the key
  // must not have a passphrase.
  std::string certificate = "";
  std::string key = "";
  // The name in the daemon's certificate, if it differs from the host in `url`.
  std::string server_name = "";
};

struct ClientOptions {
  // HOST:PORT or a gRPC target such as unix:/run/saccade.sock or ipv4:10.0.0.1:8001,10.0.0.2:8001. A host
  // name is resolved to all its addresses and calls are distributed over them round-robin, so every replica
  // behind a headless service gets its share. A list of addresses is shuffled first: clients that all have
  // the same list in the same order would go to the same replica after each failure.
  std::string url = "127.0.0.1:8001";
  // Timeout of one call, from start to response. An overloaded daemon uses it to reject what it cannot finish
  // in time.
  absl::Duration timeout = absl::Seconds(30);
  // Maximum size of one message in either direction; this is the daemon's default too. gRPC's default of 4
  // MiB is too small for many pictures.
  int64_t max_message_bytes = 64 << 20;
  // Off by default, because retries double the load of a daemon that has just reported overload. If on, gRPC
  // retries a call that ended with UNAVAILABLE, or with CANCELLED though the caller did not cancel it, up to
  // three times, and waits as long as the daemon asks for. While most calls fail, none is retried: a failure
  // takes one of a hundred tokens that all calls share, a success gives a tenth of one back, and calls are
  // retried while more than half are left. Restore and streams are not retried, because gRPC would hold what
  // they have sent; they have connections of their own then.
  bool retry = false;
  // A connection with open calls that was silent for so long is tested by a ping, and given up if that is not
  // answered within five seconds. Without it the calls to a machine that vanished wait for their timeouts.
  // absl::InfiniteDuration() sends no pings.
  absl::Duration keepalive = absl::Seconds(10);
  // Without TLS, everyone on the network path can read the traffic.
  std::optional<TlsOptions> tls = std::nullopt;
  // Sent with every call as `authorization: Bearer TOKEN`; empty sends none. Without TLS it is sent only to
  // this machine, because anyone on the network path could read and use it.
  std::string token = "";
  // Allows sending the token to other machines without TLS, for networks that encrypt the traffic themselves.
  bool token_without_tls = false;
};

// A position in the network's input: 0 is its left or top edge, 1 its right or bottom edge.
struct Position {
  float x = 0.5F;
  float y = 0.5F;
};

// Selects attention maps.
struct Explain {
  // One of the model's attention_layers; empty selects the last one.
  std::string layer = "";
  // Maximum number of maps; the layer's first maps are returned. 0 selects the daemon's default.
  int max_maps = 0;
  // Positions whose maps are returned, for models with attention_by_position. Empty selects the middle one.
  std::vector<Position> positions = {};
};

// Options of every request, independent of the model's task.
struct RequestOptions {
  // 0 selects the highest version that is ready.
  int64_t version = 0;
  // Requests with larger numbers are served first. From -100 to 100.
  int priority = 0;
  // Echoed in the response and in every log line of the daemon about this request.
  std::string request_id = "";
  // The part of the picture, or of both pictures of a stereo pair, that the model sees. Results are still in
  // the coordinates of the whole picture.
  std::optional<Region> region = std::nullopt;
  // Cuts the picture, or its region, into tiles, for detection and segmentation. nullopt selects the model's
  // own tiles, if it has some.
  std::optional<Tiles> tiles = std::nullopt;
  // Requests attention maps beside the result; not available for volumes.
  std::optional<Explain> explain = std::nullopt;
};

struct ClassifyOptions {
  RequestOptions request = {};
  // Number of classes to return; 0 selects the daemon's default.
  int top_k = 0;
  // Classes with a lower probability are omitted. From 0 to 1.
  std::optional<float> probability_threshold = std::nullopt;
};

struct DetectOptions {
  RequestOptions request = {};
  // Detections with a lower score are omitted. Detections below the model's own threshold are never returned.
  // From 0 to 1.
  std::optional<float> score_threshold = std::nullopt;
  // Maximum number of detections, best score first; 0 returns all that the model finds.
  int top_k = 0;
  // Returns only these classes; empty returns every class.
  std::vector<int64_t> classes = {};
  // False omits the masks, which makes the response smaller and faster.
  bool masks = true;
  MaskForm mask_form = MaskForm::kRle;
  // A pixel belongs to the mask if its probability is at least this. From 0 to 1; 0.5 if not set.
  std::optional<float> mask_threshold = std::nullopt;
};

// Size of a map with one value per pixel. Each of its pixels has the value of the nearest pixel of the full
// map.
struct OutputSize {
  // Each from 1 to 16384, with at most 64 Mi pixels.
  int width = 0;
  int height = 0;
  // Replaces width and height by the size at which the network saw the picture. Not allowed with a region.
  bool network = false;
};

struct SegmentOptions {
  RequestOptions request = {};
  LabelMapFormat format = LabelMapFormat::kPng;
  // Size of the label map; the picture's if not set. Areas always refer to the picture.
  std::optional<OutputSize> size = std::nullopt;
};

struct StereoOptions {
  RequestOptions request = {};
  DisparityFormat format = DisparityFormat::kPng16;
  // Size of the map; the picture's if not set. Disparities always are lengths in pixels of the picture.
  std::optional<OutputSize> size = std::nullopt;
};

struct DepthOptions {
  RequestOptions request = {};
  // kPng16 holds depths up to 256 of the model's unit, in steps of 1/256.
  DisparityFormat format = DisparityFormat::kFloat;
  // Size of the map; the picture's if not set.
  std::optional<OutputSize> size = std::nullopt;
};

struct EmbedOptions {
  RequestOptions request = {};
};

struct ActionOptions {
  RequestOptions request = {};
  // Segments with a lower score are omitted. Segments below the model's own threshold are never returned.
  // From 0 to 1.
  std::optional<float> score_threshold = std::nullopt;
  // Maximum number of actions, best score first; 0 returns all that the model finds.
  int top_k = 0;
  // Returns only these classes; empty returns every class.
  std::vector<int64_t> classes = {};
};

struct RestoreOptions {
  RequestOptions request = {};
  // Type of the voxels in the response; the type that was sent if not set.
  std::optional<VoxelType> type = std::nullopt;
};

// A volume to send: a whole TIFF file, or raw voxels. It can be used for one call only.
struct VolumeSource {
  // Size of the file or of the voxels, in bytes.
  int64_t bytes = 0;
  // Writes up to `max` of the bytes that follow those of the previous call to `to`, and returns their
  // number; 0 at the end. An error ends the call to Restore, which returns it.
  std::function<absl::StatusOr<size_t>(char* to, size_t max)> read;
  // Shape of raw voxels, which are little-endian, plane by plane and row by row. Not set for a TIFF file.
  std::optional<VolumeShape> raw = std::nullopt;
};

// Returns a source for one call. `bytes` must stay valid until the call has returned.
VolumeSource VolumeFrom(absl::string_view bytes, std::optional<VolumeShape> raw = std::nullopt);

// Receives the progress from 0 to 1; it is 0 while the volume is sent, read, and waiting. Returning false
// cancels the call, which then returns CANCELLED.
using RestoreProgress = std::function<bool(double done)>;

// Thread-safe: any number of threads may make calls concurrently; the calls share connections. Every call
// blocks until the response, an error, or the timeout. Errors carry the daemon's canonical code and message
// (see status.h for the details). A daemon that cannot be reached is UNAVAILABLE and IsUnreachable(); one
// whose certificate is not trusted is UNAVAILABLE and IsUntrusted().
class Client {
 public:
  // Checks the options but does not connect; the first call does. INVALID_ARGUMENT if `url` is not an
  // address, a certificate or key cannot be used, or another option is out of range.
  static absl::StatusOr<std::unique_ptr<Client>> Connect(ClientOptions options);

  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  // One function per task. `picture` is the content of a picture file (JPEG, PNG, WebP, TIFF or BMP) and is
  // copied once, into the message. A model of another task rejects the call. If the request has nothing that
  // it could reject, as that of Embed(), the client rejects its answer with INTERNAL.
  absl::StatusOr<Classification> Classify(absl::string_view model, absl::string_view picture,
                                          const ClassifyOptions& options = {});
  absl::StatusOr<Detections> Detect(absl::string_view model, absl::string_view picture,
                                    const DetectOptions& options = {});
  absl::StatusOr<Segmentation> Segment(absl::string_view model, absl::string_view picture,
                                       const SegmentOptions& options = {});
  // Two rectified pictures of the same size: a point lies on the same row of both.
  absl::StatusOr<Disparity> Stereo(absl::string_view model, absl::string_view left, absl::string_view right,
                                   const StereoOptions& options = {});
  // The depth of each pixel, and the picture as a vector.
  absl::StatusOr<DepthMap> Depth(absl::string_view model, absl::string_view picture,
                                 const DepthOptions& options = {});
  absl::StatusOr<Embedding> Embed(absl::string_view model, absl::string_view picture,
                                  const EmbedOptions& options = {});
  // `video` is the content of a video file: MP4 or MOV, Matroska or WebM, AVI.
  absl::StatusOr<client::Actions> Actions(absl::string_view model, absl::string_view video,
                                          const ActionOptions& options = {});
  // `frames` are encoded pictures of the same size, taken at `frames_per_second`; 0 stands for the model's
  // own rate.
  absl::StatusOr<client::Actions> Actions(absl::string_view model, const std::vector<std::string>& frames,
                                          double frames_per_second, const ActionOptions& options = {});
  // Sends the volume in parts, so it may be larger than a message. Holds at most one part of the volume and
  // the voxels of the response in memory. `volume.read` and `progress` are called on the calling thread. A
  // restoration can take minutes: set ClientOptions::timeout accordingly.
  absl::StatusOr<Restoration> Restore(absl::string_view model, const VolumeSource& volume,
                                      const RestoreOptions& options = {},
                                      const RestoreProgress& progress = {});

  // Opens a stream that carries many pictures and returns the responses in order (stream.h). Nothing is sent
  // yet, so an unreachable daemon shows with the first response. INVALID_ARGUMENT if a timeout is not
  // positive.
  absl::StatusOr<std::unique_ptr<Stream>> OpenStream(const StreamOptions& options = {});

  // Returns every model version known to the daemon, ready or not.
  absl::StatusOr<std::vector<Model>> ListModels();

  // NOT_FOUND if the model or the version is unknown. Version 0 selects the highest that is ready.
  absl::StatusOr<Model> GetModel(absl::string_view model, int64_t version = 0);

  // Returns whether the model is served; the empty name stands for the whole daemon. NOT_FOUND if it is
  // unknown.
  absl::StatusOr<Health> CheckHealth(absl::string_view model = "");

  // Blocks until the model (or the whole daemon) is served, even if the daemon restarts meanwhile.
  // DEADLINE_EXCEEDED after `timeout`, which replaces ClientOptions::timeout; the message says why it is not
  // served. UNAUTHENTICATED, PERMISSION_DENIED and UNIMPLEMENTED are returned at once.
  absl::Status WaitUntilServing(absl::string_view model, absl::Duration timeout);

  // Whether the daemon responds, and whether it and all its models are ready.
  absl::StatusOr<bool> ServerLive();
  absl::StatusOr<bool> ServerReady();

  absl::StatusOr<ServerMetadata> GetServerMetadata();

  // Returns the statistics of every ready model version; all zero for a model without requests.
  absl::StatusOr<std::vector<ModelStatistics>> GetStatistics();

  const ClientOptions& options() const { return options_; }

 private:
  struct Transport;
  Client(ClientOptions options, std::unique_ptr<Transport> transport);

  const ClientOptions options_;
  const std::unique_ptr<Transport> transport_;
};

}  // namespace saccade::client
