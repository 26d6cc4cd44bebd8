#include "server/engine/engine.h"

#include <exception>
#include <new>
#include <utility>

#include "absl/strings/str_cat.h"
#include "models/api/error.h"
#include "models/api/registry.h"
#include "models/programs/program.h"
#include "server/engine/picture_engine.h"
#include "server/engine/program_engine.h"
#include "server/engine/tensor_pass.h"

namespace saccade::server {
namespace {

absl::StatusOr<std::unique_ptr<Engine>> LoadOurs(const ModelSettings& settings,
                                                 const EngineOptions& options) {
  return MakePictureEngine(models::Load(settings.architecture, settings.options, options.version.weights_path,
                                        settings.labels, options.gpu),
                           settings);
}

absl::Status CheckProgram(const ModelSettings& settings, bool allow_executable_models) {
  if (!allow_executable_models) {
    return absl::FailedPreconditionError(
        "backend 'pytorch' runs code from the model's file, which is not allowed; start the daemon with "
        "--allow-executable-models if you trust everyone who can write to the model repository");
  }
  return CheckProgramSettings(settings);
}

absl::StatusOr<std::unique_ptr<Engine>> LoadProgram(const ModelSettings& settings,
                                                    const EngineOptions& options) {
  if (absl::Status served = CheckProgram(settings, options.allow_executable_models); !served.ok())
    return served;
  return MakeProgramEngine(
      models::LoadProgram(options.version.weights_path, {.signature = SignatureOf(settings),
                                                         .gpu = options.gpu,
                                                         .instances = options.instances,
                                                         .options = settings.options}),
      settings);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Engine>> LoadEngine(const ModelSettings& settings,
                                                   const EngineOptions& options) {
  try {
    switch (settings.backend) {
      case Backend::kSaccade:
        return LoadOurs(settings, options);
      case Backend::kPytorch:
        return LoadProgram(settings, options);
      case Backend::kEnsemble:
        break;
    }
    return absl::UnimplementedError(absl::StrCat("backend '", NameOf(settings.backend),
                                                 "' is not supported; expected 'saccade' or 'pytorch'"));
  } catch (const models::LoadError& error) {
    return absl::InvalidArgumentError(error.what());
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError("out of memory while loading the weights");
  } catch (const std::exception& error) {
    return absl::InternalError(error.what());
  }
}

absl::Status CheckEngine(const ModelSettings& settings, bool allow_executable_models) {
  if (settings.backend == Backend::kPytorch) return CheckProgram(settings, allow_executable_models);
  try {
    models::Describe(settings.architecture, settings.options, settings.labels);
    return absl::OkStatus();
  } catch (const models::LoadError& error) {
    return absl::InvalidArgumentError(error.what());
  }
}

}  // namespace saccade::server
