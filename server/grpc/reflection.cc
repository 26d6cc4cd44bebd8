#include "server/grpc/reflection.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "grpc/reflection/v1/reflection.pb.h"
#include "grpc/reflection/v1alpha/reflection.pb.h"
#include "server/grpc/serialize_message.h"
#include "server/grpc/small_messages.h"

namespace saccade::server {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::DescriptorPool;
using google::protobuf::FieldDescriptor;
using google::protobuf::FileDescriptor;
using grpc::reflection::v1::ServerReflectionRequest;
using grpc::reflection::v1::ServerReflectionResponse;

using Services = std::shared_ptr<const std::vector<std::string>>;

// Maximum number of requests of one stream. Only streams are counted to a client's rate, not their messages.
constexpr int kMaxReflectionRequests = 1000;

// No file or type of a service has a longer name, or one of more parts.
constexpr size_t kMaxNameBytes = 512;
constexpr int kMaxNameParts = 32;
// Bytes that an error shows of a longer name.
constexpr size_t kShownBytes = 64;

// The files that were sent on one stream: none is sent twice.
using SentFiles = std::set<const FileDescriptor*>;

void AddError(const absl::Status& status, ServerReflectionResponse& response) {
  response.mutable_error_response()->set_error_code(static_cast<int>(status.code()));
  response.mutable_error_response()->set_error_message(std::string(status.message()));
}

// What a request asks about. Without a name for a request that asks about none.
struct Subject {
  absl::string_view what;
  std::string name;
};

Subject SubjectOf(const ServerReflectionRequest& request) {
  switch (request.message_request_case()) {
    case ServerReflectionRequest::kFileByFilename:
      return {"file", request.file_by_filename()};
    case ServerReflectionRequest::kFileContainingSymbol:
      return {"symbol", request.file_containing_symbol()};
    case ServerReflectionRequest::kFileContainingExtension:
      return {"extension of", request.file_containing_extension().containing_type()};
    case ServerReflectionRequest::kAllExtensionNumbersOfType:
      return {"message type", request.all_extension_numbers_of_type()};
    case ServerReflectionRequest::kListServices:
    case ServerReflectionRequest::MESSAGE_REQUEST_NOT_SET:
      break;
  }
  return {};
}

void AddNotFound(const Subject& subject, ServerReflectionResponse& response) {
  const absl::string_view name = subject.name;
  const std::string shown =
      name.size() > kMaxNameBytes ? absl::StrCat(name.substr(0, kShownBytes), "...") : std::string(name);
  AddError(absl::NotFoundError(absl::StrCat("this server knows no ", subject.what, " '", shown, "'")),
           response);
}

// Whether a name is so long, or has so many parts, that it can only be made to cost time: to look for a name,
// the pool copies everything before each of its dots.
bool IsNoName(absl::string_view name) {
  return name.size() > kMaxNameBytes || std::count(name.begin(), name.end(), '.') > kMaxNameParts;
}

// Serialized once for each file: anybody may ask, as often as they like.
const std::string& SerializedFile(const FileDescriptor* file) {
  static absl::Mutex mutex(absl::kConstInit);
  static auto& files = *new std::map<const FileDescriptor*, std::string>();
  const absl::MutexLock lock(&mutex);
  std::string& bytes = files[file];
  if (bytes.empty()) {
    google::protobuf::FileDescriptorProto message;
    file->CopyTo(&message);
    bytes = message.SerializeAsString();
  }
  return bytes;
}

void AddFileAndDependencies(const FileDescriptor* file, SentFiles& sent, ServerReflectionResponse& response) {
  if (!sent.insert(file).second) return;
  response.mutable_file_descriptor_response()->add_file_descriptor_proto(SerializedFile(file));
  for (int i = 0; i < file->dependency_count(); ++i)
    AddFileAndDependencies(file->dependency(i), sent, response);
}

void AddFile(const FileDescriptor* file, SentFiles& sent, ServerReflectionResponse& response) {
  // The answer is of this kind also if all files were sent before.
  response.mutable_file_descriptor_response();
  AddFileAndDependencies(file, sent, response);
}

void AddExtensionNumbers(const DescriptorPool& pool, const Descriptor* type,
                         ServerReflectionResponse& response) {
  std::vector<const FieldDescriptor*> extensions;
  pool.FindAllExtensions(type, &extensions);
  auto* const numbers = response.mutable_all_extension_numbers_response();
  numbers->set_base_type_name(std::string(type->full_name()));
  for (const FieldDescriptor* extension : extensions) numbers->add_extension_number(extension->number());
}

void AddAnswer(const ServerReflectionRequest& request, const std::vector<std::string>& services,
               SentFiles& sent, ServerReflectionResponse& response) {
  const DescriptorPool& pool = *DescriptorPool::generated_pool();
  const Subject subject = SubjectOf(request);
  if (IsNoName(subject.name)) return AddNotFound(subject, response);
  switch (request.message_request_case()) {
    case ServerReflectionRequest::kListServices:
      for (const std::string& service : services) {
        response.mutable_list_services_response()->add_service()->set_name(service);
      }
      return;
    case ServerReflectionRequest::kFileByFilename: {
      const FileDescriptor* const file = pool.FindFileByName(subject.name);
      if (file == nullptr) return AddNotFound(subject, response);
      return AddFile(file, sent, response);
    }
    case ServerReflectionRequest::kFileContainingSymbol: {
      const FileDescriptor* const file = pool.FindFileContainingSymbol(subject.name);
      if (file == nullptr) return AddNotFound(subject, response);
      return AddFile(file, sent, response);
    }
    case ServerReflectionRequest::kFileContainingExtension: {
      const Descriptor* const type = pool.FindMessageTypeByName(subject.name);
      const int number = request.file_containing_extension().extension_number();
      const FieldDescriptor* const field =
          type == nullptr ? nullptr : pool.FindExtensionByNumber(type, number);
      if (field == nullptr) return AddNotFound(subject, response);
      return AddFile(field->file(), sent, response);
    }
    case ServerReflectionRequest::kAllExtensionNumbersOfType: {
      const Descriptor* const type = pool.FindMessageTypeByName(subject.name);
      if (type == nullptr) return AddNotFound(subject, response);
      return AddExtensionNumbers(pool, type, response);
    }
    case ServerReflectionRequest::MESSAGE_REQUEST_NOT_SET:
      break;
  }
  AddError(absl::InvalidArgumentError("the request asks for nothing; set one of message_request's fields"),
           response);
}

// Answers one request at a time: the next is read when the answer was written. Both versions' messages have
// the same fields.
class ReflectionStream final : public CallHandler {
 public:
  explicit ReflectionStream(Services services) : services_(std::move(services)) {}

  void OnStart(Call* call) override {
    call_ = call;
    call_->Read();
  }

  void OnMessage(BytePieces message) override {
    if (++requests_ > kMaxReflectionRequests) {
      call_->Finish({absl::ResourceExhaustedError(absl::StrCat(
          "a stream of reflection has at most ", kMaxReflectionRequests, " requests; open another one"))});
      return;
    }
    ServerReflectionRequest request;
    if (!ParseSmallMessage(message, request)) {
      call_->Finish({absl::InvalidArgumentError("the request is no ServerReflectionRequest")});
      return;
    }
    ServerReflectionResponse response;
    AddAnswer(request, *services_, sent_, response);
    response.set_valid_host(request.host());
    *response.mutable_original_request() = std::move(request);
    call_->Send(SerializeMessage(response));
  }

  void OnHalfClose() override { call_->Finish({absl::OkStatus()}); }

  void OnSent(bool ok) override {
    if (ok) call_->Read();
  }

  void OnCancel() override { call_->Finish({absl::CancelledError("the client has ended the call")}); }

  void OnDone() override {}

 private:
  const Services services_;
  Call* call_ = nullptr;
  int requests_ = 0;
  SentFiles sent_;
};

}  // namespace

std::vector<CallMethod> ReflectionMethods(std::vector<std::string> services) {
  // Naming a message links the file's descriptor into the program.
  const std::string versions[] = {
      std::string(grpc::reflection::v1::ServerReflectionRequest::descriptor()->file()->package()),
      std::string(grpc::reflection::v1alpha::ServerReflectionRequest::descriptor()->file()->package())};
  for (const std::string& version : versions) services.push_back(version + ".ServerReflection");
  const auto shared = std::make_shared<const std::vector<std::string>>(std::move(services));
  std::vector<CallMethod> methods;
  for (const std::string& version : versions) {
    methods.push_back({.path = absl::StrCat("/", version, ".ServerReflection/ServerReflectionInfo"),
                       .make = [shared] { return std::make_shared<ReflectionStream>(shared); },
                       .max_growth_bytes = kMaxSmallMessage});
  }
  return methods;
}

}  // namespace saccade::server
