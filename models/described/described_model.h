// A model of pictures whose network is a program with a description.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "models/api/model.h"
#include "models/described/picture_program.h"
#include "models/programs/program.h"

namespace saccade::models {

// `program` has the signature SignatureOf(pictures). `labels` is that of the model's labels file; empty if
// the description's own are to be used. Runs one picture of zeros through the program, and throws a LoadError
// if it fails, if its outputs do not fit the head, or if the number of labels differs from that of the
// classes. Whether a picture's result depends on others in its batch, and whether Run() may be called by
// several threads, is up to the program.
std::unique_ptr<Model> MakeDescribedModel(std::unique_ptr<TensorProgram> program, PictureProgram pictures,
                                          const std::vector<std::string>& labels);

}  // namespace saccade::models
