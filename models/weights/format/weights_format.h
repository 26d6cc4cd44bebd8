// Parses weights files of any supported format, recognised by content.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "models/weights/format/file_contents.h"
#include "models/weights/format/tensor_entry.h"

namespace saccade::models {

// Parses a zip archive and a pickle as a state_dict, and anything else as safetensors. Throws LoadError.
std::vector<TensorEntry> ParseWeights(Bytes file);

// Whether a file that begins so, with FileContents::kBeginningBytes or more, is read as a state_dict.
bool IsStateDict(Bytes beginning);

// Reads as much of a weights file as ParseWeights() looks at: the header of safetensors, and the whole of any
// other file. The entries have names, types and shapes; their data is not read. Throws as
// FileContents::Read().
std::shared_ptr<const FileContents> ReadWeightsIndex(const std::string& path);

// Whether a tensor counts a batch norm's batches in training, which no network here uses.
bool IsBatchCounter(std::string_view name);

// Returns the prefix that wrappers have put before all names: torch.nn.DataParallel, a module that holds the
// network as `model` (such as PyTorch Lightning's), torch.compile. None of the networks has such names
// itself.
std::string WrappersPrefix(const std::vector<TensorEntry>& entries);

}  // namespace saccade::models
