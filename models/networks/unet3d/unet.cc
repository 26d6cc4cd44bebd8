#include "models/networks/unet3d/unet.h"

#include <utility>

#include "models/device/transfer.h"
#include "models/networks/unet3d/maps.h"
#include "models/networks/unet3d/regular.h"
#include "models/networks/unet3d/siamese.h"

namespace saccade::models {
namespace {

// Indices of blocks_.
enum : size_t { kEncoder0, kEncoder1, kBottom, kDecoder1, kDecoder0 };

// Reach of two convolutions; even, so that windows can be pooled.
constexpr int64_t kConvolutionHalo = 2;

std::function<at::Tensor(const at::Tensor&)> Attention(const TensorMap& tensors, size_t block,
                                                       const UnetOptions& options) {
  const EncoderDecoder network = RestoringUnet(options);
  const std::string name = network.prefix + network.blocks.at(block).name + ".attention";
  switch (options.attention) {
    case UnetAttention::kNone:
      break;
    case UnetAttention::kSiamese:
      return SiameseModule(SiameseWeights(tensors, name, options));
    case UnetAttention::kRegular:
      return RegularModule(tensors, name, options);
  }
  return nullptr;
}

// The attention that AttendedOutput computes, or none.
std::string OutputAttention(const UnetOptions& options) {
  return options.attention == UnetAttention::kSiamese ? "decoder.0.attention" : "";
}

}  // namespace

Unet::Unet(const UnetOptions& options, const TensorMap& tensors)
    : target_(tensors.target),
      step_(RestoringUnet(options).step),
      tile_{options.tile, options.tile, options.tile},
      blocks_(MakeBlocks(RestoringUnet(options), tensors)),
      bottom_attention_(Attention(tensors, kBottom, options)),
      decoder_attention_(Attention(tensors, kDecoder1, options)),
      output_(tensors, OutputAttention(options), "output", options) {
  if (options.attention == UnetAttention::kRegular) last_attention_ = Attention(tensors, kDecoder0, options);
}

Tiling Unet::Cut(const VolumeSides& sides) const { return {sides, tile_, /*multiple=*/2}; }

VolumeSides Unet::Halved(const VolumeSides& sides) const {
  return Part{.begin = {}, .size = sides}.Over(step_).size;
}

at::Tensor Unet::First(const at::Tensor& volume, Progress& progress) const {
  const ConvolutionBlock& encode = blocks_[kEncoder0];
  const Tiling tiling = Cut(SidesOf(volume));
  at::Tensor half = NewMap(encode.outputs(), Halved(SidesOf(volume)), target_);
  for (int64_t i = 0; i < tiling.count(); ++i) {
    const Part core = tiling.Core(i);
    const Part window = tiling.Around(core, kConvolutionHalo);
    const at::Tensor x = encode(TakenPart(volume, window, target_));
    View(half, core.Over(step_)).copy_(Pooled(View(x, core.From(window)), step_));
    progress.Add(encode.work() * static_cast<double>(Positions(window.size)));
  }
  return half;
}

Unet::Encoded Unet::Second(const at::Tensor& half, Progress& progress) const {
  const ConvolutionBlock& encode = blocks_[kEncoder1];
  const VolumeSides sides = SidesOf(half);
  const Tiling tiling = Cut(sides);
  Encoded encoded{.skip = NewMap(encode.outputs(), sides, target_),
                  .pooled = NewMap(encode.outputs(), Halved(sides), target_)};
  for (int64_t i = 0; i < tiling.count(); ++i) {
    const Part core = tiling.Core(i);
    const Part window = tiling.Around(core, kConvolutionHalo);
    const at::Tensor x = View(encode(TakenPart(half, window, target_)), core.From(window));
    View(encoded.skip, core).copy_(x);
    View(encoded.pooled, core.Over(step_)).copy_(Pooled(x, step_));
    progress.Add(encode.work() * static_cast<double>(Positions(window.size)));
  }
  return encoded;
}

at::Tensor Unet::Bottom(at::Tensor quarter, Progress& progress) const {
  const double work = blocks_[kBottom].work() * static_cast<double>(Positions(SidesOf(quarter)));
  at::Tensor x = blocks_[kBottom](std::move(quarter));
  if (bottom_attention_) x = bottom_attention_(x);
  progress.Add(work);
  return x;
}

at::Tensor Unet::Decoded(Encoded encoded, Progress& progress) const {
  const ConvolutionBlock& decode = blocks_[kDecoder1];
  const Tiling tiling = Cut(SidesOf(encoded.skip));
  at::Tensor half = NewMap(decode.outputs(), SidesOf(encoded.skip), target_);
  for (int64_t i = 0; i < tiling.count(); ++i) {
    const Part core = tiling.Core(i);
    const Part window = tiling.Around(core, kConvolutionHalo);
    const at::Tensor x = decode(Joined(View(encoded.skip, window), View(encoded.pooled, window.Over(step_))));
    View(half, core).copy_(View(x, core.From(window)));
    progress.Add(decode.work() * static_cast<double>(Positions(window.size)));
  }
  encoded = {};
  return decoder_attention_ ? decoder_attention_(half) : half;
}

at::Tensor Unet::Last(const at::Tensor& volume, const at::Tensor& half, Progress& progress) const {
  const ConvolutionBlock& encode = blocks_[kEncoder0];
  const ConvolutionBlock& decode = blocks_[kDecoder0];
  const Tiling tiling = Cut(SidesOf(volume));
  AttendedOutput::Pass pass(output_, SidesOf(volume));
  at::Tensor whole;
  if (last_attention_) whole = NewMap(decode.outputs(), SidesOf(volume), target_);
  for (int64_t i = 0; i < tiling.count(); ++i) {
    const Part core = tiling.Core(i);
    const Part window = tiling.Around(core, kConvolutionHalo);
    const Part wider = tiling.Around(core, 2 * kConvolutionHalo);
    at::Tensor skip = encode(TakenPart(volume, wider, target_));
    at::Tensor joined = Joined(View(skip, window.From(wider)), View(half, window.Over(step_)));
    skip.reset();
    const at::Tensor x = decode(std::move(joined));
    if (last_attention_) {
      View(whole, core).copy_(View(x, core.From(window)));
    } else {
      pass.Add(x, core.From(window), core);
    }
    progress.Add(encode.work() * static_cast<double>(Positions(wider.size)) +
                 decode.work() * static_cast<double>(Positions(window.size)));
  }
  if (last_attention_) {
    const Part all{.begin = {}, .size = SidesOf(volume)};
    pass.Add(last_attention_(whole), all, all);
  }
  return Fetched(pass.Finish());
}

at::Tensor Unet::operator()(const at::Tensor& volume, Progress& progress) const {
  Encoded encoded = Second(First(volume, progress), progress);
  encoded.pooled = Bottom(std::move(encoded.pooled), progress);
  return Last(volume, Decoded(std::move(encoded), progress), progress);
}

double Unet::Work(const VolumeSides& sides) const {
  const VolumeSides half = Halved(sides);
  const auto work = [&](size_t block, int64_t positions) {
    return blocks_[block].work() * static_cast<double>(positions);
  };
  return work(kEncoder0, Cut(sides).Computed(kConvolutionHalo) + Cut(sides).Computed(2 * kConvolutionHalo)) +
         work(kEncoder1, Cut(half).Computed(kConvolutionHalo)) + work(kBottom, Positions(Halved(half))) +
         work(kDecoder1, Cut(half).Computed(kConvolutionHalo)) +
         work(kDecoder0, Cut(sides).Computed(kConvolutionHalo));
}

}  // namespace saccade::models
