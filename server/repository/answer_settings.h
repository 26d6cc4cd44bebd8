// The part of a model's settings that changes answers.
#pragma once

#include <string>

#include "server/repository/model_settings.h"

namespace saccade::server {

// A line for each setting that can change an answer, in a fixed order: equal settings make equal texts.
// Settings that only change when and where an answer is computed are left out, as are names and versions of
// the model.
std::string AnswerSettings(const ModelSettings& settings);

}  // namespace saccade::server
